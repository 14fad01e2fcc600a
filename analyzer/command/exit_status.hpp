// The exit statuses of every verb except `run` and `ci`, which pass on the exit status of CMD.
#pragma once

namespace forksight {

enum class ExitStatus : int {
  kNothingFound = 0,
  kFindings = 1,
  kUsage = 2,
  kUnreadable = 3,  // the evidence could not be read
};

constexpr int as_int(ExitStatus status) { return static_cast<int>(status); }

}  // namespace forksight
