// What a run exits with. Pure.
#pragma once

#include "session/session.hpp"

namespace forksight {

// `fails`: something at or above --fail-on was found and was not taken back. `status`: how CMD ended, as of wait(2).
int exit_status(const RunOptions& options, bool fails, int status);

// What was done to a job.
struct JobEnd {
  bool is_at_limit = false;        // the job was ended, as its time was up
  bool is_command_killed = false;  // CMD never went on, and was ended
  bool has_killed = false;         // processes of the job never went on, and were ended
  int status = 0;                  // what CMD's own end exits with
};

inline constexpr int kJobEnded = 124;  // as timeout(1)

// Never 0 of a job in which something hung: that CMD did not notice makes it no success.
int job_status(const JobEnd& end);

}  // namespace forksight
