// Steps that make processes, and the atfork handlers that fork() calls.
#pragma once

#include "scenario.hpp"

namespace truth {

// Returns false if the step is not of this kind. For a `fork` it also returns in the child, where the calling thread
// has another slot (see Here). For `exec` it returns only if the call failed.
bool perform_fork_step(int index, int* result);

// True if the step makes a daemon. After such a step the process that made the daemon ends.
bool is_daemon(const Step& step);

}  // namespace truth
