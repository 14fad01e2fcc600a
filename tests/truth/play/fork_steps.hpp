// Steps that make processes, and the handlers that fork() calls then.
#pragma once

#include "scenario.hpp"

namespace truth {

// False: it is no step of this kind. The child of `fork` comes back from it, too, as another thread: see Here. `exec`
// does not return.
bool perform_fork_step(int index, int* result);

// The process that makes a daemon ends.
bool is_daemon(const Step& step);

}  // namespace truth
