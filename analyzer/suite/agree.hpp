// Compares what `forksight run` reports about a hang with what `forksight why` reports. `run` has watched the program
// from the start, so `run` must know at least as much as `why`.
#pragma once

#include <string>
#include <vector>

#include "diagnose/finding.hpp"

namespace forksight::suite {

// Returns one line for each fact that `why` reports and `run` does not report. If there are no lines, both agree. The
// findings come from two runs of one program, so pids, tids and addresses differ.
std::vector<std::string> compare_views(const std::vector<Finding>& run, const std::vector<Finding>& why);

// Compares findings of the same rule from `core` and `why`. Returns one line for each finding of `core` whose
// fingerprint `why` does not report.
std::vector<std::string> compare_causes(const std::vector<Finding>& core, const std::vector<Finding>& why);

}  // namespace forksight::suite
