// Runs a verb in a child process, so that a file that the verb reads can neither block nor crash the command
// (guard/child.hpp). If the child crashes, this process says so.
#pragma once

#include <chrono>
#include <optional>

#include "files/budgets.hpp"
#include "guard/child.hpp"

namespace forksight {

enum class Output {
  // Standard output appears only when `work` has ended, because a child that has written half a report may be replaced
  // by another child.
  kAtTheEnd,
  // Standard output appears as soon as `work` writes it. This is for an output that may be too large for the memory.
  kAtOnce,
};

struct GuardedOptions {
  Output output = Output::kAtTheEnd;
  bool examines_processes = false;  // see guard::Options
  // The child is ended after this time. nullopt: no limit.
  std::optional<std::chrono::steady_clock::duration> limit = files::kLongestReading;
};

// Runs `work` in a child process. `work` returns an exit status, and writes to standard output and standard error.
// `work` does not read standard input. The standard error of `work` appears at once. Returns the exit status of `work`,
// or kUnreadable if `work` crashed, if too many file systems do not answer, or if its output cannot be written. If a
// signal ends the child, the same signal ends this process. If no process can be made, `work` runs in this process. But
// if root runs forksight, this function then prints an error and returns kUnreadable, because a process with the rights
// of root must not read files of other users.
int run_guarded(const guard::Work& work, const GuardedOptions& options = {});

}  // namespace forksight
