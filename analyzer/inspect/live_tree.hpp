// A process that hangs, with all that belongs to it: its descendants, its ancestors in the same session. First without
// stopping anything, by /proc; then those threads that are proved to be stuck are stopped for a moment, for their
// registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "inspect/build_model.hpp"
#include "result.hpp"

namespace forksight::inspect {

struct LiveTreeOptions {
  bool stop = true;  // false: nothing is ever traced; stacks are found as well as can be without registers
  // Whether a process may be stopped where something that is named could still end its wait; empty: all may.
  std::function<bool(std::int32_t pid)> may_stop_idle;
  int depth = -1;    // generations of descendants, -1: all
  std::function<void(std::size_t done, std::size_t total)> progress;  // processes looked at; may be empty
};

// A process that is not stuck for good: what its threads are in.
struct AwakeProcess {
  std::int32_t pid = 0;
  std::string exe;
  std::vector<std::string> ways_out;  // as in model::Process
  struct Thread {
    std::int32_t tid = 0;
    std::string name;
    char state = '?';
    proc::Syscall call;
    std::string target;  // what it waits for there, as far as that can be told
  };
  std::vector<Thread> threads;
};

struct LiveTree {
  std::vector<Subject> subjects;
  std::vector<AwakeProcess> awake;  // the process that was asked about and its descendants
  std::size_t threads = 0;
  std::vector<std::string> limits;
};

// The error is one sentence about `pid` itself: not there, not ours to look at, not of a kind that can be explained.
Result<LiveTree> look_at_tree(std::int32_t pid, const LiveTreeOptions& options = {});

}  // namespace forksight::inspect
