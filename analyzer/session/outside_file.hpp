// outside.json is in the same folder as run.json. The file contains findings that the traces of the run do not show.
// The run made these findings when it examined living processes. `forksight report` reads outside.json to show these
// findings later.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.hpp"
#include "files/reader.hpp"
#include "model/model.hpp"
#include "result.hpp"

namespace forksight {

inline constexpr char kOutsideFile[] = "outside.json";

struct KeptFinding {
  Finding finding;
  // the processes with the finding; finding.process and finding.processes are not used
  std::vector<model::Process> processes;
};

std::string outside_to_json(const std::vector<KeptFinding>& kept);
// Reads the text of an outside.json. The text is hostile input: sizes, types and words are checked.
Result<std::vector<KeptFinding>> parse_outside(std::string_view text);

// Replaces the file in `folder`. `fd`: a descriptor of the folder, which is used instead of the path; -1: there is
// none. Returns "" or the reason of the failure.
std::string write_outside(const std::filesystem::path& folder, const std::vector<KeptFinding>& kept, int fd = -1);
// Reads each outside.json in these folders and below them. Adds a sentence to `limits` for each file that cannot be
// read.
std::vector<KeptFinding> read_outside(const files::Reader& reader, const std::vector<std::filesystem::path>& folders,
                                      std::vector<std::string>& limits);

}  // namespace forksight
