// Finds the EXPECT lines and MARK comments of a file. Does not interpret their text.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "result.hpp"

namespace forksight::suite {

// A line "EXPECT-KIND(variant): text".
struct ExpectLine {
  std::string kind;     // "" or "-BARE", "-NONE" ...
  std::string variant;  // "" if none is named
  std::string text;
  int number = 0;
};

Result<std::vector<std::string>> read_lines(const std::filesystem::path& file);

std::vector<ExpectLine> find_expect_lines(const std::vector<std::string>& lines);

// Returns the lines that apply to `variant`. There are four groups of lines: EXPECT-BARE; EXPECT-CORE; EXPECT-WHY and
// EXPECT-UNKNOWN; all other lines. If a group has lines that name the variant, only these lines of the group apply.
// Otherwise the lines of the group that name no variant apply. In the group of all other lines, only EXPECT and
// EXPECT-NONE lines decide which lines apply: if no such line names the variant, the lines that name no variant apply.
std::vector<ExpectLine> select_lines(const std::vector<ExpectLine>& lines, const std::string& variant);

// Returns the line number of each MARK comment, by the name in the comment. It is an error if a name occurs twice.
Result<std::map<std::string, int>> find_marks(const std::filesystem::path& file);

}  // namespace forksight::suite
