#include "session/exit.hpp"

#include <sys/wait.h>

namespace forksight {

int exit_status(const RunOptions& options, bool fails, int status) {
  constexpr int kSignalled = 128;  // as in a shell
  if (fails && options.error_exitcode) return *options.error_exitcode;
  return WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
}

int job_status(const JobEnd& end) {
  const bool is_hidden = end.has_killed && end.status == 0;
  return end.is_at_limit || end.is_command_killed || is_hidden ? kJobEnded : end.status;
}

}  // namespace forksight
