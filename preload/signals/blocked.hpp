// Signals that the forking thread blocks. In the child they are blocked from the start, and such a signal stays pending
// until the child unblocks it. So if the forking thread blocks SIGTERM, SIGTERM does not end the child.
#pragma once

#include "record/fork_in_progress.hpp"

namespace forksight::at_fork {
struct BlockedSignals {
  static void records(const Fork& fork);
};
}  // namespace forksight::at_fork
