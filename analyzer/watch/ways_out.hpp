// What can still end a wait that no examined task will end: one rule for every kind of wait. The proof uses it
// (proof.hpp). docs/proven.md lists these, and what no look from outside can show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watch/evidence.hpp"
#include "watch/thread_graph.hpp"

namespace forksight::watch {

// Signals for which some thread of a process would run a handler; bit 0 is signal 1.
struct Handlers {
  std::uint64_t ways_out = 0;  // its handler may write, post, unlock, raise an exception or jump
  // besides, Python's handler of SIGINT exists: it is meant for a person, but it ends a wait all the same
  bool for_ctrl_c = false;
};

// Signals with a handler that this thread would run. Leaves out signals that end no sleep: faults, and the two that
// glibc keeps for itself, 32 and 33. `has_libc`: the process has glibc mapped.
std::uint64_t find_caught(const proc::Status& status, bool has_libc);

// Leaves out: signals that every living thread blocks; faults, which no sleeping thread raises (Rust and the JVM have
// handlers for them); libc's own signals; signals that the shim answers.
Handlers find_handlers(const ProcessEvidence& evidence);

// Judged by the file name of its program.
bool is_python_program(std::string_view exe);

// The reason why a thread that seems to sleep in its call does not: it is frozen, or held by a seccomp filter. "" if it
// does sleep there. `function`: the kernel function that it sleeps in.
std::string_view find_hold(std::string_view function);
// The files to read for the freezer states of these control groups, from the text of /proc/PID/cgroup. Pure.
std::vector<std::string> find_freezer_files(std::string_view cgroup);
bool is_frozen_text(std::string_view text);
// The control groups that are frozen. Each group is looked at once, so an object must not outlive one look at the
// processes.
class Freezers {
 public:
  // True if a control group of the process, of version 1 or 2, is frozen.
  bool is_frozen(std::int32_t pid);

 private:
  std::map<std::string, bool> files_;
};
// The shell command that lets a frozen process go on. It writes to the file of the control group that was told to
// freeze, which may be one above the group of the process. "" if none is frozen.
std::string how_to_thaw(std::int32_t pid);

// "SIGTERM and SIGUSR1"
std::string name_signals(std::uint64_t signals);

// For each process, whose way out could end its wait: its own comes first, then that of a process that it waits for
// over any number of steps. nullopt: none. Parallel to `processes`; `has_one`: the processes that have a way out
// themselves.
std::vector<std::optional<std::size_t>> find_rescuers(const std::vector<ProcessWaits>& processes,
                                                      const std::vector<bool>& has_one);

}  // namespace forksight::watch
