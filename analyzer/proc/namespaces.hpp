// Translates numbers between pid namespaces. /proc and all output of forksight use the numbers of forksight's own
// namespace. A process in another namespace (a container) has other numbers in its memory and in the arguments of its
// system calls.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace forksight::proc {

// True if forksight is in the initial pid namespace. Then no process is hidden from forksight. In any other pid
// namespace, the processes outside of that namespace are hidden. The hidden processes may still hold the other ends of
// pipes, locks and shared memory.
bool is_in_initial_pid_namespace();

// True if all of `pids` are in the pid namespace of task `tid`. False if that cannot be read.
bool are_in_namespace_of(std::int32_t tid, const std::vector<std::int32_t>& pids);

// Returns a sentence if there is no /proc, or if /proc shows another pid namespace than the one that forksight's system
// calls use. Else nullopt.
std::optional<std::string> find_foreign_proc();

// True if the memory of the process may have thread ids of two pid namespaces. Such a process, or an ancestor of which
// it is a copy, was forked into a new pid namespace and has not called exec since. A lock that a thread of the parent
// took has an id of the parent's namespace. A lock that a thread of the process took has an id of its own namespace.
bool has_numbers_of_two_namespaces(std::int32_t pid);

// Finds the threads of one process by the numbers that they have in their own pid namespace. For a process in
// forksight's namespace, these are the numbers in /proc.
class OwnNumbers {
 public:
  explicit OwnNumbers(std::int32_t pid) : pid_(pid) {}
  // Returns the tid, as forksight sees it, of the thread that has the number `own`; 0: there is none. `depth`:
  // Status::ns_depth of any thread of the process.
  std::int32_t tid_of(std::int32_t own, std::uint32_t depth);

 private:
  std::int32_t pid_;
  std::optional<std::map<std::int32_t, std::int32_t>> tids_;  // own number to tid; read at the first use
};

// Like OwnNumbers::tid_of(), but searches all tasks in the pid namespace of `tid`. nullopt: this cannot be known.
std::optional<std::int32_t> find_in_namespace_of(std::int32_t tid, std::int32_t own, std::uint32_t depth);

// True if `pid` has the number `own` in the pid namespace at this depth. That namespace is the one of `pid`, or one
// that contains it.
bool is_called(std::int32_t pid, std::int32_t own, std::uint32_t depth);

// Returns the process that has the number `own` in a pid namespace other than forksight's; 0: there is none, or there
// are several. This helps a user who gives a number from inside a container as if it belonged to forksight's namespace.
std::int32_t find_called(std::int32_t own);

}  // namespace forksight::proc
