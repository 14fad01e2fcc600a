#include "watch/stuck_threads.hpp"

#include <algorithm>
#include <utility>

#include "proc/mappings.hpp"
#include "proc/namespaces.hpp"
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

// The thread waits for exactly one thread of its process, or for one that has ended.
bool has_one_waker(const WaitFacts& facts) {
  if (!facts.wakers_known || (facts.mapping != WordMapping::kPrivate && !facts.word.owner_is_gone)) return false;
  if (facts.wakers.empty()) return facts.word.owner_is_gone;
  return facts.wakers.size() == 1 && facts.wakers.front().tid != 0;
}

// A mutex in shared memory that only its owner may unlock, and whose owner no longer exists. The owner's number means
// the same thread for all processes that share the mutex: they are in one pid namespace, and forksight sees all of
// them.
bool is_abandoned(FutexLookup& lookup, const proc::ThreadSample& thread, const WaitFacts& facts) {
  const proc::FutexWord& word = facts.word;
  if (facts.mapping != WordMapping::kShared || !word.owner_is_gone || !is_unlock_checked(word)) return false;
  const auto place = lookup.find_shared(thread);
  if (!place || (!proc::is_in_initial_pid_namespace() && !proc::is_closed_to_others(thread.tid, *place))) return false;
  const auto mappers = proc::SharedMemory::read({}).mappers(*place);
  return mappers && proc::are_in_namespace_of(thread.tid, *mappers);
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
    if (!is_lock_or_join(round->threads[index])) continue;
    facts[index] = lookup.look_up(round->threads[index]);
    if (is_abandoned(lookup, round->threads[index], facts[index])) facts[index].wakers_known = true;
  }
  if (std::ranges::none_of(facts, has_one_waker) || !proc::runs_x86_64(pid)) return stuck;
  const std::vector<bool> in_ring = find_rings(pid, round->threads, facts);
  for (std::size_t index = 0; index < round->threads.size(); ++index) {
    if (!in_ring[index]) continue;
    auto again = proc::sample_thread(pid, round->threads[index].tid, refused);
    // A thread that ran may have been part of the ring: then nothing is known about the others either.
    if (!again || !is_unchanged(round->threads[index], *again)) return {};
    stuck.threads.push_back(std::move(*again));
    stuck.facts.push_back(std::move(facts[index]));
  }
  return stuck;
}

}  // namespace forksight::watch
