// If the processes of a run do nothing, and no hang is proven, finds out what these processes wait for. forksight
// reports these waits when the user presses Ctrl-C. Ctrl-C usually ends the processes at the same moment, and an ended
// process cannot be examined. So RunRest examines the waits in advance.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "watch/supervisor.hpp"

namespace forksight {

class RunRest {
 public:
  // The caller must call this each time it has examined the processes of the run. The function is cheap: once a second
  // it reads one file for each process. When the run has come to rest, the function examines the waits. While the run
  // stays at rest, the function examines the waits again only if a process has used processor time since the previous
  // examination.
  void follow(const watch::Supervisor& supervisor, watch::Clock::time_point now);

  // True if during the last second no process was made or ended, and all processes together used almost no processor
  // time.
  bool is_at_rest() const { return is_at_rest_; }
  // Returns what each process waits for, without stacks, as it was seen while the run was at rest. Empty unless
  // is_at_rest().
  const model::Model& waits() const { return waits_; }

 private:
  using Ticks = std::map<std::int32_t, std::uint64_t>;  // the processor time of each process, by pid

  Ticks ticks_;
  Ticks looked_at_;  // the value of ticks_ when waits_ was made
  watch::Clock::time_point since_{};
  watch::Clock::time_point next_check_{};
  watch::Clock::time_point next_look_{};
  bool is_at_rest_ = false;
  model::Model waits_;
};

// Returns the processes of `seen` in which each thread waits. Leaves out `told`, the processes that were already
// reported.
std::vector<model::ProcessId> find_waiting_processes(const model::Model& seen, const std::set<proc::ProcessKey>& told);

}  // namespace forksight
