#include "watch/stuck_threads.hpp"

#include <utility>

#include "watch/proof.hpp"
#include "watch/sampler.hpp"
#include "watch/thread_graph.hpp"
#include "watch/wait_class.hpp"

namespace forksight::watch {
namespace {

bool is_lock_or_join(const ThreadSample& thread) {
  const WaitClass kind = classify(thread).kind;
  return kind == WaitClass::kPrivateFutex || kind == WaitClass::kPlainFutex;
}

// It waits for one thread of its process, and for no other.
bool has_one_waker(const WaitFacts& facts) {
  return facts.mapping == WordMapping::kPrivate && facts.wakers_known && facts.wakers.size() == 1 &&
         facts.wakers.front().tid != 0;
}

}  // namespace

StuckThreads find_stuck_threads(std::int32_t pid) {
  StuckThreads stuck;
  bool refused = false;
  const auto round = sample_round(pid, refused);
  if (!round) return stuck;
  FutexLookup lookup(pid);
  ProcessWaits process;
  process.pid = pid;
  std::vector<WaitFacts> facts(round->threads.size());
  bool has_any = false;
  for (std::size_t index = 0; index < round->threads.size(); ++index) {
    const ThreadSample& thread = round->threads[index];
    if (is_lock_or_join(thread)) facts[index] = lookup.look_up(thread);
    const bool waits = has_one_waker(facts[index]);
    has_any = has_any || waits;
    process.threads.push_back({thread.tid, !waits, facts[index].wakers});
  }
  if (!has_any || !runs_x86_64(pid)) return stuck;
  const ProcessJudgement judgement = judge_threads({process}).front();
  for (std::size_t index = 0; index < round->threads.size(); ++index) {
    if (judgement.threads[index] == Fate::kAwake) continue;
    auto again = sample_thread(pid, round->threads[index].tid, refused);
    // One that ran may have been of the ring: then nothing is known of the others either.
    if (!again || !is_unchanged(round->threads[index], *again)) return {};
    stuck.threads.push_back(std::move(*again));
    stuck.facts.push_back(std::move(facts[index]));
  }
  return stuck;
}

}  // namespace forksight::watch
