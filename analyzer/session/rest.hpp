// A run that does nothing, though it is not proved to hang: what its processes wait for. It is asked at Ctrl-C, and
// Ctrl-C reaches the processes when it reaches us: what ends at once leaves nothing to look at. So the answer is kept
// ready.
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
  // At each look. Cheap: one read a process and second, and a look at the waits when the run has come to rest.
  void follow(const watch::Supervisor& supervisor, watch::Clock::time_point now);

  // Since a second or more no process was made or ended, and all together used next to no processor time.
  bool is_at_rest() const { return is_at_rest_; }
  // What each waits for, as of the latest rest: no stacks. Nothing unless is_at_rest().
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

// The processes of `seen` of which each thread is in a wait, without those that were told of already.
std::vector<model::ProcessId> find_resting(const model::Model& seen, const std::set<proc::ProcessKey>& told);

}  // namespace forksight
