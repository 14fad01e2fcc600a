#include "inspect/signal_waits.hpp"

#include <sys/syscall.h>

#include <algorithm>

namespace forksight::inspect {

void note_signal_waits(const Scene& scene, const image::Image& parent, model::Fork& fork) {
  for (const image::Thread& thread : parent.threads) {
    if (!thread.call || !thread.call->in_syscall || thread.call->number != SYS_rt_sigtimedwait) continue;
    const model::ThreadId id = scene.facts_of(fork.process, thread.tid).id;
    if (std::ranges::find(fork.lost_threads, id) == fork.lost_threads.end()) continue;
    const auto signals = parent.memory->value<std::uint64_t>(thread.call->args[0]);
    if (signals) fork.lost_waits.push_back({id, model::AwaitedKind::kSignals, *signals, {}});
  }
}

}  // namespace forksight::inspect
