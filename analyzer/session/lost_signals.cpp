#include "session/lost_signals.hpp"

namespace forksight {

std::map<std::int32_t, std::uint64_t> find_lost_signals(const model::Model& model) {
  std::map<std::int32_t, std::uint64_t> lost;
  for (const model::Fork& fork : model.forks) {
    if (!fork.child || model.processes[*fork.child].has_execed) continue;
    for (const model::LostWait& wait : fork.lost_waits) {
      if (wait.kind == model::AwaitedKind::kSignals) lost[model.processes[*fork.child].pid] |= wait.object;
    }
  }
  return lost;
}

}  // namespace forksight
