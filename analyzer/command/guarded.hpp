// Runs a verb in a child process, so that a file that the verb reads can neither block nor crash the command. A file of
// another user may be on a file system that does not answer. A call for such a file blocks in the kernel, and not even
// SIGKILL can end it. If that happens, this process abandons the child, notes the file system as dead
// (files/dead_places.hpp), and starts the verb again: the report then lacks only that file system. If the child
// crashes, this process says so.
#pragma once

#include <functional>

namespace forksight {

// `work` returns an exit status and writes to standard output and standard error; it does not read standard input. Its
// output appears when it has ended, its standard error at once. Returns the exit status of `work`; kUnreadable if it
// crashed, if too many file systems do not answer, or if its output cannot be written. If a signal ends the child, the
// same signal ends this process. If no process can be made, `work` runs in this one.
int run_guarded(const std::function<int()>& work);

}  // namespace forksight
