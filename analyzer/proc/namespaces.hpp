// Pid namespaces. /proc and all output use numbers of forksight's own namespace. A process in another namespace (a
// container) has numbers of its own in its memory and in the arguments of its calls.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace forksight::proc {

// No process is hidden from forksight. In any other pid namespace, processes outside of it are hidden, although they
// may hold the other ends of pipes, locks and shared memory.
bool is_in_initial_pid_namespace();

// All of `pids` are in the pid namespace of task `tid`. False if that cannot be read.
bool are_in_namespace_of(std::int32_t tid, const std::vector<std::int32_t>& pids);

// One sentence if /proc shows another pid namespace than the one in which system calls find processes.
std::optional<std::string> find_foreign_proc();

// The threads of one process by their own numbers. For a process in forksight's namespace these are the known numbers.
class OwnNumbers {
 public:
  explicit OwnNumbers(std::int32_t pid) : pid_(pid) {}
  // `depth`: Status::ns_depth of any of its threads. 0: it has no such thread.
  std::int32_t tid_of(std::int32_t own, std::uint32_t depth);

 private:
  std::int32_t pid_;
  std::optional<std::map<std::int32_t, std::int32_t>> tids_;  // read once
};

// The same for all tasks in the pid namespace of `tid`. nullopt: it cannot be known.
std::optional<std::int32_t> find_in_namespace_of(std::int32_t tid, std::int32_t own, std::uint32_t depth);

// True if a process at this depth, in the namespace of `pid` or in one within it, knows `pid` by the number `own`.
bool is_called(std::int32_t pid, std::int32_t own, std::uint32_t depth);

// The process in another namespace that has this number there, for a user who took it for a number of this namespace;
// 0: there is none, or several.
std::int32_t find_called(std::int32_t own);

}  // namespace forksight::proc
