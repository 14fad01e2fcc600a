#include "watch/stuck_threads.hpp"

#include <algorithm>
#include <utility>

#include "proc/process_traits.hpp"
#include "proc/thread_sample.hpp"
#include "proc/wait_class.hpp"
#include "watch/futex_lookup.hpp"
#include "watch/proof.hpp"
#include "watch/thread_graph.hpp"

namespace forksight::watch {
namespace {

bool is_lock_or_join(const proc::ThreadSample& thread) {
  const proc::WaitClass kind = proc::classify(thread).kind;
  return kind == proc::WaitClass::kPrivateFutex || kind == proc::WaitClass::kPlainFutex;
}

// It waits for one thread of its process and for no other, or for one that is gone.
bool has_one_waker(const WaitFacts& facts) {
  if (facts.mapping != WordMapping::kPrivate || !facts.wakers_known) return false;
  if (facts.wakers.empty()) return facts.word.owner_is_gone;
  return facts.wakers.size() == 1 && facts.wakers.front().tid != 0;
}

}  // namespace

std::vector<bool> find_rings(std::int32_t pid, const std::vector<proc::ThreadSample>& threads,
                             const std::vector<WaitFacts>& facts) {
  ProcessWaits process;
  process.pid = pid;
  for (std::size_t index = 0; index < threads.size(); ++index) {
    process.threads.push_back({threads[index].tid, !has_one_waker(facts[index]), facts[index].wakers});
  }
  const ProcessJudgement judgement = judge_threads({process}).front();
  std::vector<bool> stuck;
  for (const Fate fate : judgement.threads) stuck.push_back(fate != Fate::kAwake);
  return stuck;
}

StuckThreads find_stuck_threads(std::int32_t pid) {
  StuckThreads stuck;
  bool refused = false;
  const auto round = proc::sample_round(pid, refused);
  if (!round) return stuck;
  FutexLookup lookup(pid);
  std::vector<WaitFacts> facts(round->threads.size());
  for (std::size_t index = 0; index < round->threads.size(); ++index) {
    if (is_lock_or_join(round->threads[index])) facts[index] = lookup.look_up(round->threads[index]);
  }
  if (std::ranges::none_of(facts, has_one_waker) || !proc::runs_x86_64(pid)) return stuck;
  const std::vector<bool> in_ring = find_rings(pid, round->threads, facts);
  for (std::size_t index = 0; index < round->threads.size(); ++index) {
    if (!in_ring[index]) continue;
    auto again = proc::sample_thread(pid, round->threads[index].tid, refused);
    // One that ran may have been of the ring: then nothing is known of the others either.
    if (!again || !is_unchanged(round->threads[index], *again)) return {};
    stuck.threads.push_back(std::move(*again));
    stuck.facts.push_back(std::move(facts[index]));
  }
  return stuck;
}

}  // namespace forksight::watch
