#include "session/exit.hpp"

#include <sys/wait.h>

namespace forksight {

int exit_status(const RunOptions& options, bool fails, int status) {
  constexpr int kSignalled = 128;  // as a shell has it
  if (fails && options.error_exitcode) return *options.error_exitcode;
  return WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace forksight
