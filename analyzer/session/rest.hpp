// What the processes of a run wait for that does nothing, although no hang is proven. Users ask at Ctrl-C. Ctrl-C
// reaches the processes at the same moment as forksight, and processes that end at once cannot be examined. So the
// answer is prepared in advance.
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
  // Called at each look. It is cheap: one read for each process and second, and one look at the waits when the run has
  // come to rest.
  void follow(const watch::Supervisor& supervisor, watch::Clock::time_point now);

  // For a second or more no process was made or ended, and all together used almost no processor time.
  bool is_at_rest() const { return is_at_rest_; }
  // What each process waits for, as of the latest rest: without stacks. Empty unless is_at_rest().
  const model::Model& waits() const { return waits_; }

 private:
  using Ticks = std::map<std::int32_t, std::uint64_t>;  // of processor time, by pid

  Ticks ticks_;
  Ticks looked_at_;  // what they had used when waits_ was made
  watch::Clock::time_point since_{};
  watch::Clock::time_point next_check_{};
  watch::Clock::time_point next_look_{};
  bool is_at_rest_ = false;
  model::Model waits_;
};

// The processes of `seen` in which each thread waits, without those that were reported already.
std::vector<model::ProcessId> find_resting(const model::Model& seen, const std::set<proc::ProcessKey>& told);

}  // namespace forksight
