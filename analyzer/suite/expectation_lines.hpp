// The EXPECT lines and MARK comments of a file, as they are written there.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "result.hpp"

namespace forksight::suite {

// EXPECT-KIND(variant): text
struct ExpectLine {
  std::string kind;     // "" or "-BARE", "-NONE" ...
  std::string variant;  // "" if none is named
  std::string text;
  int number = 0;
};

Result<std::vector<std::string>> read_lines(const std::filesystem::path& file);

std::vector<ExpectLine> find_expect_lines(const std::vector<std::string>& lines);

// The lines that apply to `variant`: for each kind those with its name, or else those without a name.
std::vector<ExpectLine> select_lines(const std::vector<ExpectLine>& lines, const std::string& variant);

// {name: line}; an error if a name occurs twice.
Result<std::map<std::string, int>> find_marks(const std::filesystem::path& file);

}  // namespace forksight::suite
