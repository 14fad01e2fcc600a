// Steps that make processes, and the handlers that fork() calls then.
#pragma once

#include "scenario.hpp"

namespace truth {

// Returns false if the step is not of this kind. The child of `fork` returns from this function, too, as another
// thread: see Here. `exec` does not return.
bool perform_fork_step(int index, int* result);

// Whether the step makes a daemon. Then the process that made it ends.
bool is_daemon(const Step& step);

}  // namespace truth
