// What `forksight run` says of a hang against what `forksight why` says of it: who watched from the start knows no less.
#pragma once

#include <string>
#include <vector>

#include "diagnose/finding.hpp"

namespace forksight::suite {

// One line for each thing that `why` tells and `run` does not; none is agreement. They are of two runs of one program:
// pids, tids and addresses differ.
std::vector<std::string> compare_views(const std::vector<Finding>& run, const std::vector<Finding>& why);

// The same of what is told of a core, as far as `why` tells it by the same rule: only that it is the same cause.
std::vector<std::string> compare_causes(const std::vector<Finding>& core, const std::vector<Finding>& why);

}  // namespace forksight::suite
