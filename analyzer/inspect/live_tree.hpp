// A process that hangs, with all that belongs to it: its descendants, its ancestors in the same session. First without
// stopping anything, by /proc; then those threads that are proved to be stuck are stopped for a moment, for their
// registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "inspect/build_model.hpp"
#include "proc/proc_fs.hpp"
#include "result.hpp"
#include "watch/supervisor.hpp"

namespace forksight::inspect {

struct LiveTreeOptions {
  bool stop = true;  // false: nothing is ever traced; stacks are found as well as can be without registers
  // Whether a process may be stopped where something that is named could still end its wait; empty: all may.
  std::function<bool(std::int32_t pid)> may_stop_idle;
  // Processes that belong to the same job and do not descend from `pid`: they are looked at as if they did.
  std::vector<proc::ProcessKey> others;
  // By pid: signals that the shim handles there, which are no way out of a wait.
  std::map<std::int32_t, watch::OwnSignal> own_signals;
  int depth = -1;        // generations of descendants, -1: all
  bool of_idle = false;  // stacks of those, too, that are not stuck, as well as they can be found without a stop
  std::function<void(std::size_t done, std::size_t total)> progress;  // processes looked at; may be empty
};

struct LiveTree {
  std::vector<Subject> subjects;
  std::size_t threads = 0;
  std::vector<std::string> limits;
};

// The error is one sentence about `pid` itself: not there, not ours to look at, not of a kind that can be explained.
Result<LiveTree> look_at_tree(std::int32_t pid, const LiveTreeOptions& options = {});

}  // namespace forksight::inspect
