// The exit status of a run. Pure functions.
#pragma once

#include "session/session.hpp"

namespace forksight {

// Returns the exit status of a run. `fails`: a finding at or above --fail-on was made and not withdrawn. `status`: how
// CMD ended, as wait(2) reports it.
int exit_status(const RunOptions& options, bool fails, int status);

// How a job ended, and what forksight did to it.
struct JobEnd {
  bool is_at_limit = false;        // forksight ended the job, because the job reached its time limit
  bool is_command_killed = false;  // forksight ended CMD, because CMD could never go on
  bool has_killed = false;         // forksight ended processes that could never go on
  int status = 0;                  // the exit status that a run without a limit would have
};

inline constexpr int kJobEnded = 124;  // timeout(1) uses the same number

// Returns the exit status of a job. The status is never 0 if forksight ended the job or some of its processes, because
// of a hang or the limit. Such a job has failed, even if the exit status of CMD is 0.
int job_status(const JobEnd& end);

}  // namespace forksight
