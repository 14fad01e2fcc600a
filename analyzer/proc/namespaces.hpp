// Pid namespaces. What /proc shows, and what is printed, are numbers of our own namespace; what a process of another
// one (a container) has in its memory and in the arguments of its calls are numbers of its own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace forksight::proc {

// Nobody is hidden from us. In any other pid namespace processes outside of it are, though they may hold the other ends
// of pipes, locks and shared memory.
bool is_in_initial_pid_namespace();

// All of `pids` are in the pid namespace of task `tid`. False if that cannot be read.
bool are_in_namespace_of(std::int32_t tid, const std::vector<std::int32_t>& pids);

// One sentence where /proc shows another pid namespace than that in which our system calls find processes.
std::optional<std::string> find_foreign_proc();

// The threads of one process by their own numbers. Of a process of our namespace these are the ones that we know.
class OwnNumbers {
 public:
  explicit OwnNumbers(std::int32_t pid) : pid_(pid) {}
  // `depth`: Status::ns_depth of any of its threads. 0: it has no such thread.
  std::int32_t tid_of(std::int32_t own, std::uint32_t depth);

 private:
  std::int32_t pid_;
  std::optional<std::map<std::int32_t, std::int32_t>> tids_;  // read once
};

// The same among all tasks of the pid namespace of `tid`. nullopt: that cannot be known.
std::optional<std::int32_t> find_in_namespace_of(std::int32_t tid, std::int32_t own, std::uint32_t depth);

// Is `pid` the process that one at this depth, of whose namespace it is or of one within that, calls `own`.
bool is_called(std::int32_t pid, std::int32_t own, std::uint32_t depth);

// A process elsewhere whose own number this is, for somebody who took it for one of ours; 0: there is none, or several.
std::int32_t find_called(std::int32_t own);

}  // namespace forksight::proc
