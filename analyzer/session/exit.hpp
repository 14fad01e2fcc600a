// The exit status of a run. Pure functions.
#pragma once

#include "session/session.hpp"

namespace forksight {

// Returns the exit status of a run. `fails`: a finding at or above --fail-on was made and not withdrawn. `status`: how
// CMD ended, as wait(2) reports it.
int exit_status(const RunOptions& options, bool fails, int status);

// How a job ended, and what forksight did to it.
struct JobEnd {
  bool is_at_limit = false;        // the job was ended because its time was up
  bool is_command_killed = false;  // CMD could never go on, and forksight ended it
  bool has_killed = false;         // processes of the job could never go on, and forksight ended them
  int status = 0;                  // the exit status that a run without a limit would have
};

inline constexpr int kJobEnded = 124;  // as for timeout(1)

// Returns the exit status of a job. It is never 0 if forksight had to end the job, or some of its processes, because of
// a hang or the limit. Such a job has failed, even if CMD ends with 0.
int job_status(const JobEnd& end);

}  // namespace forksight
