#include "session/no_evidence.hpp"

#include <algorithm>
#include <utility>

#include "diagnose/diagnose.hpp"

namespace forksight {

namespace {

bool has_nothing_to_lose(const model::Fork& fork) {
  return fork.lost_threads.empty() && fork.unknown_threads == 0 && fork.pools.empty() && fork.thread_pools.empty() &&
         fork.held.empty() && fork.mpi.empty() && !fork.cuda && !fork.bypassed;
}

}  // namespace

bool merge_without_names(model::Model& nameless, const collect::RunLog& log) {
  collect::merge_run_log(nameless, log);
  return !may_find_with_names(nameless);
}

bool has_no_evidence(const model::Model& model) {
  const bool has_touched =
      !model.touches.empty() || !model.handler_runs.empty() || !model.vfork_exits.empty() || !model.cuda_ipc.empty();
  const bool has_foresight = !model.lock_orders.empty() || !model.racy_touches.empty() || !model.lives.empty();
  return !has_touched && !has_foresight && model.limits.empty() &&
         std::ranges::all_of(model.forks, has_nothing_to_lose) && !may_find(model);
}

}  // namespace forksight
