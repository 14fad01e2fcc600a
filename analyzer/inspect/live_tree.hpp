// Examines a process that hangs, and everything that belongs to it: its descendants, and its ancestors in the same
// session. The first look uses /proc and stops nothing. Then threads that are proven to be stuck, or that may be
// spinning, are stopped for a moment, to read their registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "files/reader.hpp"
#include "inspect/build_model.hpp"
#include "proc/proc_fs.hpp"
#include "result.hpp"
#include "watch/supervisor.hpp"

namespace forksight::inspect {

struct LiveTreeOptions {
  bool stop = true;  // false: no thread is stopped; stacks are found without registers, as far as that is possible
  // Tells whether a process may be stopped although its wait has a way out. Such a wait may be intended. Empty: each
  // process may be stopped.
  std::function<bool(std::int32_t pid)> may_stop_idle;
  // Processes of the same job that do not descend from `pid`. They are examined like `pid` itself.
  std::vector<proc::ProcessKey> others;
  // By pid: the signals that the shim handles in that process. These signals are no way out of a wait.
  std::map<std::int32_t, watch::OwnSignal> own_signals;
  // The command that forksight started; nullopt: the processes were there before forksight.
  std::optional<proc::ProcessKey> started;
  int depth = -1;        // generations of descendants, -1: all
  bool of_idle = false;  // also find the stacks of processes that are not stuck, as far as possible without a stop
  // called with the number of processes looked at; may be empty
  std::function<void(std::size_t done, std::size_t total)> progress;
};

struct LiveTree {
  std::vector<Subject> subjects;
  std::size_t threads = 0;  // of the processes that were asked about
  std::vector<std::string> limits;
};

// The error is one sentence about `pid` itself: the process does not exist, forksight may not examine it, or forksight
// cannot explain processes of its kind.
Result<LiveTree> look_at_tree(const files::Reader& reader, std::int32_t pid, const LiveTreeOptions& options = {});

}  // namespace forksight::inspect
