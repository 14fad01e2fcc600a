// Runs a verb in a child process, so that a file that the verb reads can neither block nor crash the command
// (guard/child.hpp). If the child crashes, this process says so.
#pragma once

#include "guard/child.hpp"

namespace forksight {

enum class Output {
  kAtTheEnd,  // when `work` has ended, because a child that is replaced by another may have written half a report
  kAtOnce,    // as it comes: for an output that may be too large for the memory
};

// `work` returns an exit status and writes to standard output and standard error; it does not read standard input. Its
// standard error appears at once. Returns the exit status of `work`; kUnreadable if it
// crashed, if too many file systems do not answer, or if its output cannot be written. If a signal ends the child, the
// same signal ends this process. If no process can be made, `work` runs in this one.
int run_guarded(const guard::Work& work, Output output = Output::kAtTheEnd);

}  // namespace forksight
