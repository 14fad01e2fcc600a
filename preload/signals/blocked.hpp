// Signals that the forking thread blocks. The child begins with them blocked: such a signal stays pending until the
// child unblocks it. So the child of a thread that blocks SIGTERM cannot be asked to end.
#pragma once

#include "record/fork_in_progress.hpp"

namespace forksight::at_fork {
struct BlockedSignals {
  static void records(const Fork& fork);
};
}  // namespace forksight::at_fork
