// Finds what can still end a wait although no examined thread or process will end it: a signal handler, and a person or
// program that thaws a frozen process. The rules are the same for every kind of wait. The proof (proof.hpp) uses these
// rules. docs/proven.md lists these ways out, and the ways out that no look can show.
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

// The bit of a signal in the sets of /proc/PID/status; bit 0 is signal 1.
constexpr std::uint64_t bit_of_signal(int signal) { return std::uint64_t{1} << static_cast<unsigned>(signal - 1); }

// Signals for which some thread of a process would run a handler; bit 0 is signal 1.
struct Handlers {
  std::uint64_t ways_out = 0;  // signals whose handlers may end a wait: by a write, post, unlock, exception or jump
  // true if SIGINT would run Python's own handler. Then SIGINT is not in `ways_out`, although it ends a wait: only a
  // person sends it (Ctrl-C)
  bool for_ctrl_c = false;
};

// Returns the signals for which this thread would run a handler. Leaves out faults, because they do not end a wait. If
// the process has glibc mapped (`has_libc`), also leaves out signals 32 and 33, which glibc keeps for itself.
// `has_python_abort_handler`: the process is a Python script that has a handler of SIGABRT.
std::uint64_t find_caught(const proc::Status& status, bool has_libc, bool has_python_abort_handler);

// Finds the handlers that some thread of the process would run. Leaves out: signals that every living thread blocks;
// faults, which a sleeping thread cannot cause (Rust and the JVM have handlers for them); the signals that glibc keeps
// for itself; signals that the shim handles. A signal of these kinds counts nevertheless if a POSIX timer of the
// process sends it.
Handlers find_handlers(const ProcessEvidence& evidence);

// True if the file name of the program begins with "python".
bool is_python_program(std::string_view exe);

// Returns the reason why a thread does not really wait in the call that the kernel shows for it: "is frozen", "is held
// by a seccomp filter", or that the call waits for a page of memory (userfaultfd). Returns "" if the thread does wait
// in that call. `function`: the kernel function that the thread sleeps in.
std::string_view find_hold(std::string_view function);
// Returns the files that contain the freezer states of these control groups. `cgroup`: the text of /proc/PID/cgroup.
// Pure.
std::vector<std::string> find_freezer_files(std::string_view cgroup);
bool is_frozen_text(std::string_view text);
// Finds out which control groups are frozen. It reads each group once and keeps the answer, so an object must not be
// used for more than one look at the processes.
class Freezers {
 public:
  // True if a control group of the process, of version 1 or 2, is frozen.
  bool is_frozen(std::int32_t pid);

 private:
  std::map<std::string, bool> files_;
};
// Returns the shell command that lets a frozen process go on. The command writes to the control group that somebody
// froze. That group may be the group of the process, or a group above it. Returns "" if no group is frozen.
std::string how_to_thaw(std::int32_t pid);

// Names the signals: "SIGTERM and SIGUSR1".
std::string name_signals(std::uint64_t signals);

// Finds for each process the index of the process whose way out could end its wait. `has_one`: whether each process has
// a way out itself. A process that has a way out gets its own index. Any other process gets the index of the nearest
// process with a way out that could wake it, directly or through other processes. nullopt: there is none. The result is
// parallel to `processes`.
std::vector<std::optional<std::size_t>> find_nearest_ways_out(const std::vector<ProcessWaits>& processes,
                                                              const std::vector<bool>& has_one);

}  // namespace forksight::watch
