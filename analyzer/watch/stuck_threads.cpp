#include "watch/stuck_threads.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "proc/mappings.hpp"
#include "proc/namespaces.hpp"
#include "proc/proc_fs.hpp"
#include "proc/process_traits.hpp"
#include "proc/python_gil.hpp"
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

// True if exactly one thread of the process can end the wait, or if no thread can, because the owner has ended.
bool has_one_waker(const WaitFacts& facts) {
  if (!facts.wakers_known || (facts.mapping != WordMapping::kPrivate && !facts.word.owner_is_gone)) return false;
  if (facts.wakers.empty()) return facts.word.owner_is_gone;
  return facts.wakers.size() == 1 && facts.wakers.front().tid != 0;
}

bool is_wait_for_gil(const WaitFacts& facts) { return facts.word.use == model::FutexUse::kGil; }

// True if the thread still waits for the same GIL, the same thread has that GIL, and the waiting thread has checked the
// GIL at least once since `facts` were read. If the interpreter were ending, the waiting thread would have ended at
// that check. The check happens under the mutex under which the GIL changes its holder. So a thread that continues to
// wait after the check does not hold the GIL itself.
bool waits_on_for_gil(std::int32_t pid, FutexLookup& lookup, std::int32_t tid, const WaitFacts& facts,
                      proc::ThreadSample& now) {
  constexpr std::chrono::seconds kLongest{2};       // a busy machine may delay the thread this long
  constexpr std::chrono::milliseconds kBetween{5};  // Python's default time between two checks of the GIL
  const auto end = std::chrono::steady_clock::now() + kLongest;
  bool refused = false;
  const auto first = proc::sample_thread(pid, tid, refused);
  while (first && std::chrono::steady_clock::now() < end) {
    auto again = proc::sample_thread(pid, tid, refused);
    if (!again || again->ended()) return false;
    const bool has_looked = again->status.voluntary > first->status.voluntary;
    const WaitFacts now_facts = has_looked ? lookup.look_up(*again) : WaitFacts{};
    if (has_looked && is_wait_for_gil(now_facts)) {
      now = std::move(*again);
      return now_facts.word.lock == facts.word.lock && now_facts.word.owner == facts.word.owner;
    }
    std::this_thread::sleep_for(kBetween);
  }
  return false;
}

bool is_unchanged_now(std::int32_t pid, const proc::ThreadSample& before, proc::ThreadSample& now) {
  bool refused = false;
  auto again = proc::sample_thread(pid, before.tid, refused);
  if (!again || !is_unchanged(before, *again)) return false;
  now = std::move(*again);
  return true;
}

// True if the thread waits for a mutex in shared memory that only its owner may unlock, and the owner no longer exists.
// The function also checks that the owner's tid means the same thread for all processes that share the mutex. Therefore
// these processes must be in one pid namespace, and forksight must see all of them.
bool is_abandoned(FutexLookup& lookup, const proc::ThreadSample& thread, const WaitFacts& facts) {
  const proc::FutexWord& word = facts.word;
  if (facts.mapping != WordMapping::kShared || !word.owner_is_gone || !only_owner_can_unlock(word)) return false;
  const auto place = lookup.find_shared(thread);
  if (!place || (!proc::is_in_initial_pid_namespace() && !proc::is_closed_to_others(thread.tid, *place))) return false;
  const auto mappers = proc::SharedMemory::read({}).mappers(*place);
  return mappers && proc::are_in_namespace_of(thread.tid, *mappers);
}

// A thread that waits for a GIL seems to be awake at the moments when it checks the GIL. This function looks again at
// each thread that seems to be awake and for which another thread waits. It does so for a while, until it sees that the
// thread waits for a GIL. If a look finds the thread in a private wait with a timeout, the function replaces the
// thread's sample and facts.
void await_wait_for_gil(std::int32_t pid, FutexLookup& lookup, proc::Round& round, std::vector<WaitFacts>& facts) {
  constexpr int kLooks = 20;
  constexpr std::chrono::milliseconds kBetween{5};
  std::set<std::int32_t> owners;
  for (const WaitFacts& one : facts) {
    if (has_one_waker(one) && !one.wakers.empty()) owners.insert(one.wakers.front().tid);
  }
  for (std::size_t index = 0; index < round.threads.size(); ++index) {
    proc::ThreadSample& thread = round.threads[index];
    const bool is_awake = proc::classify(thread).kind == proc::WaitClass::kAwakable;
    if (!is_awake || is_wait_for_gil(facts[index]) || !owners.contains(thread.tid)) continue;
    for (int look = 0; look < kLooks && !is_wait_for_gil(facts[index]); ++look) {
      std::this_thread::sleep_for(kBetween);
      bool refused = false;
      auto again = proc::sample_thread(pid, thread.tid, refused);
      if (!again || again->ended()) break;
      if (!proc::is_timed_private_wait(again->call)) continue;
      facts[index] = lookup.look_up(*again);
      thread = std::move(*again);
    }
  }
}

}  // namespace

bool StuckThreads::has_gil() const { return std::ranges::any_of(facts, is_wait_for_gil); }

bool are_still_stuck(std::int32_t pid, const StuckThreads& stuck) {
  for (std::size_t index = 0; index < stuck.threads.size(); ++index) {
    bool refused = false;
    const auto now = proc::sample_thread(pid, stuck.threads[index].tid, refused);
    if (!now || now->ended()) return false;
    if (!is_wait_for_gil(stuck.facts[index]) && !is_unchanged(stuck.threads[index], *now)) return false;
  }
  return true;
}

std::vector<bool> find_rings(std::int32_t pid, const std::vector<proc::ThreadSample>& threads,
                             const std::vector<WaitFacts>& facts) {
  ProcessWaits process;
  process.pid = pid;
  for (std::size_t index = 0; index < threads.size(); ++index) {
    process.threads.push_back({threads[index].tid, !has_one_waker(facts[index]), facts[index].wakers});
  }
  const ProcessJudgement judgement = judge_threads({process}).front();
  std::vector<bool> stuck;
  for (const StuckState state : judgement.threads) stuck.push_back(state != StuckState::kAwake);
  return stuck;
}

StuckThreads find_stuck_threads(std::int32_t pid) {
  StuckThreads stuck;
  bool refused = false;
  auto round = proc::sample_round(pid, refused);
  if (!round) return stuck;
  FutexLookup lookup(pid);
  std::vector<WaitFacts> facts(round->threads.size());
  for (std::size_t index = 0; index < round->threads.size(); ++index) {
    if (!is_lock_or_join(round->threads[index])) continue;
    facts[index] = lookup.look_up(round->threads[index]);
    if (is_abandoned(lookup, round->threads[index], facts[index])) facts[index].wakers_known = true;
  }
  if (std::ranges::none_of(facts, has_one_waker) || !proc::runs_x86_64(pid).value_or(false)) return stuck;
  for (std::size_t index = 0; index < round->threads.size(); ++index) {
    if (proc::is_timed_private_wait(round->threads[index].call)) facts[index] = lookup.look_up(round->threads[index]);
  }
  if (lookup.has_python(pid)) await_wait_for_gil(pid, lookup, *round, facts);
  std::vector<bool> in_ring = find_rings(pid, round->threads, facts);
  // The threads that wait for a GIL are examined first. If one of them has woken another thread of the ring, the loop
  // below finds that this other thread has run.
  std::vector<proc::ThreadSample> again(round->threads.size());
  bool has_left = false;
  for (std::size_t index = 0; index < round->threads.size(); ++index) {
    if (!in_ring[index] || !is_wait_for_gil(facts[index])) continue;
    if (waits_on_for_gil(pid, lookup, round->threads[index].tid, facts[index], again[index])) continue;
    facts[index] = {};
    has_left = true;
  }
  if (has_left) in_ring = find_rings(pid, round->threads, facts);
  for (std::size_t index = 0; index < round->threads.size(); ++index) {
    // If a thread of the ring ran, nothing is known about the others either.
    if (in_ring[index] && !is_wait_for_gil(facts[index]) &&
        !is_unchanged_now(pid, round->threads[index], again[index]))
      return {};
  }
  std::size_t living = 0;
  for (std::size_t index = 0; index < round->threads.size(); ++index) {
    if (!round->threads[index].ended()) ++living;
    if (!in_ring[index]) continue;
    stuck.threads.push_back(std::move(again[index]));
    stuck.facts.push_back(std::move(facts[index]));
  }
  // If a thread was made after the first samples, `round` does not have it. Then the stuck threads are not all threads
  // of the process.
  const auto now = proc::list_numbers(proc::proc_path(pid, "task")).numbers;
  const auto is_known = [&](std::int32_t tid) {
    return std::ranges::find(round->threads, tid, &proc::ThreadSample::tid) != round->threads.end();
  };
  stuck.are_all = stuck.threads.size() == living && std::ranges::all_of(now, is_known);
  return stuck;
}

}  // namespace forksight::watch
