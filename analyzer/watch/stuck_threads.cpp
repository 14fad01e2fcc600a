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

bool is_unchanged_now(std::int32_t pid, const proc::ThreadSample& before, proc::ThreadSample& now) {
  bool refused = false;
  auto again = proc::sample_thread(pid, before.tid, refused);
  if (!again || !is_unchanged(before, *again)) return false;
  now = std::move(*again);
  return true;
}

// True if the thread waits for a mutex in shared memory that only its owner may unlock, and the owner no longer exists.
// The owner's tid must mean the same thread for all processes that share the mutex. So the function also checks that
// these processes are in one pid namespace, and that forksight sees all of them.
bool is_abandoned(FutexLookup& lookup, const proc::ThreadSample& thread, const WaitFacts& facts) {
  const proc::FutexWord& word = facts.word;
  if (facts.mapping != WordMapping::kShared || !word.owner_is_gone || !only_owner_can_unlock(word)) return false;
  const auto place = lookup.find_shared(thread);
  if (!place || (!proc::is_in_initial_pid_namespace() && !proc::is_closed_to_others(thread.tid, *place))) return false;
  const auto mappers = proc::SharedMemory::read({}).mappers(*place);
  return mappers && proc::are_in_namespace_of(thread.tid, *mappers);
}

bool is_same_gil(const WaitFacts& one, const WaitFacts& other) {
  return one.word.lock == other.word.lock && one.word.owner == other.word.owner;
}

enum class Look {
  kSeen,      // the thread waits for a GIL, and has checked the GIL since forksight first saw this wait
  kMayBeGil,  // the thread runs or waits for a processor, or was not yet seen to check a GIL and wait again
  kElsewhere  // the thread has ended, or is in another call
};

// Looks once at a thread that may wait for a GIL, and notes in `seen` what it sees. The thread's wait is confirmed only
// if the thread has checked the GIL at least once since forksight first saw this wait. If the interpreter were ending,
// the waiting thread would have ended at that check. The thread holds a mutex during the check, and the holder of the
// GIL changes only under that mutex. So a thread that checks the GIL and then waits again is not itself the holder.
Look look_for_gil_wait(std::int32_t pid, FutexLookup& lookup, std::int32_t tid, GilObservations& seen) {
  bool refused = false;
  const auto call = proc::read_call(pid, tid, refused);
  if (!call) return Look::kElsewhere;
  if (!call->in_syscall) return Look::kMayBeGil;
  if (!proc::is_timed_private_wait(*call)) return Look::kElsewhere;
  auto sample = proc::sample_thread(pid, tid, refused);
  if (!sample || sample->ended()) return Look::kElsewhere;
  WaitFacts facts = lookup.look_up(*sample);
  if (!is_wait_for_gil(facts)) return Look::kMayBeGil;
  const auto known = seen.by_tid.find(tid);
  if (known != seen.by_tid.end() && is_same_gil(known->second.facts, facts)) {
    GilObservations::Observation& observation = known->second;
    if (sample->status.voluntary > observation.voluntary) observation.is_confirmed = true;
    observation.latest = std::move(*sample);
    return observation.is_confirmed ? Look::kSeen : Look::kMayBeGil;
  }
  const auto later = proc::sample_thread(pid, tid, refused);
  if (!later || later->ended()) return Look::kElsewhere;
  seen.by_tid[tid] = {std::move(facts), later->status.voluntary, false, std::move(*sample)};
  return Look::kMayBeGil;
}

// Looks at two kinds of threads again and again: threads that wait for a GIL, and threads that seem to be awake
// although another thread waits for them. Does so until the wait of each of these threads is confirmed, or the thread
// is known not to wait for a GIL. Stores the facts of each confirmed wait in `facts`. Clears the facts of each wait for
// a GIL that was not confirmed. Sets `seen.is_open` if some of these threads are still undecided when `patience` runs
// out.
void follow_gil_waits(std::int32_t pid, FutexLookup& lookup, const proc::Round& round, std::vector<WaitFacts>& facts,
                      GilObservations& seen, const Patience& patience) {
  constexpr std::chrono::milliseconds kBetween{1};  // Python's default time between two checks of the GIL is 5 ms
  if (seen.by_tid.empty()) seen.before = round.threads;
  std::set<std::int32_t> owners;
  for (const WaitFacts& one : facts) {
    if (has_one_waker(one) && !one.wakers.empty()) owners.insert(one.wakers.front().tid);
  }
  std::vector<std::int32_t> wanted;
  for (std::size_t index = 0; index < round.threads.size(); ++index) {
    const proc::ThreadSample& thread = round.threads[index];
    if (proc::classify(thread).kind != proc::WaitClass::kAwakable) {
      seen.by_tid.erase(thread.tid);
    } else if (owners.contains(thread.tid) || is_wait_for_gil(facts[index])) {
      wanted.push_back(thread.tid);
    }
  }
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    std::vector<std::int32_t> open;
    for (const std::int32_t tid : wanted) {
      if (look_for_gil_wait(pid, lookup, tid, seen) == Look::kMayBeGil) open.push_back(tid);
    }
    wanted = std::move(open);
    const bool are_seen = std::ranges::all_of(wanted, [&](std::int32_t tid) { return seen.by_tid.contains(tid); });
    const auto longest = are_seen ? patience.when_seen : patience.at_first;
    if (wanted.empty() || std::chrono::steady_clock::now() - start >= longest) break;
    std::this_thread::sleep_for(kBetween);
  }
  seen.is_open = !wanted.empty();
  for (std::size_t index = 0; index < round.threads.size(); ++index) {
    const auto known = seen.by_tid.find(round.threads[index].tid);
    const bool is_confirmed = known != seen.by_tid.end() && known->second.is_confirmed;
    if (is_confirmed) {
      facts[index] = known->second.facts;
    } else if (is_wait_for_gil(facts[index])) {
      facts[index] = {};
    }
  }
}

const proc::ThreadSample* find_sample(const std::vector<proc::ThreadSample>& threads, std::int32_t tid) {
  const auto found = std::ranges::find(threads, tid, &proc::ThreadSample::tid);
  return found == threads.end() ? nullptr : &*found;
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

StuckThreads find_stuck_threads(std::int32_t pid, GilObservations& seen, const Patience& patience) {
  StuckThreads stuck;
  seen.is_open = false;
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
  if (std::ranges::none_of(facts, has_one_waker) || !proc::runs_x86_64(pid).value_or(false)) {
    seen = {};
    return stuck;
  }
  if (lookup.has_python(pid)) {
    for (std::size_t index = 0; index < round->threads.size(); ++index) {
      if (proc::is_timed_private_wait(round->threads[index].call)) facts[index] = lookup.look_up(round->threads[index]);
    }
    follow_gil_waits(pid, lookup, *round, facts, seen, patience);
  }
  const std::vector<bool> in_ring = find_rings(pid, round->threads, facts);
  std::vector<proc::ThreadSample> again(round->threads.size());
  bool has_gil = false;
  for (std::size_t index = 0; index < round->threads.size(); ++index) {
    if (!in_ring[index] || !is_wait_for_gil(facts[index])) continue;
    again[index] = seen.by_tid.at(round->threads[index].tid).latest;
    has_gil = true;
  }
  for (std::size_t index = 0; index < round->threads.size(); ++index) {
    if (!in_ring[index] || is_wait_for_gil(facts[index])) continue;
    // If one thread of the ring ran between its two samples, the ring is not proven. If a thread of the ring waits for
    // a GIL, the first sample of each other thread is the one in `seen.before`. It was taken before forksight first
    // looked at the waits for the GIL.
    const std::int32_t tid = round->threads[index].tid;
    const proc::ThreadSample* const before = has_gil ? find_sample(seen.before, tid) : &round->threads[index];
    if (before != nullptr && is_unchanged_now(pid, *before, again[index])) continue;
    if (has_gil) {
      seen = {};
      seen.is_open = true;
    }
    return {};
  }
  std::size_t living = 0;
  for (std::size_t index = 0; index < round->threads.size(); ++index) {
    if (!round->threads[index].ended()) ++living;
    if (!in_ring[index]) continue;
    stuck.threads.push_back(std::move(again[index]));
    stuck.facts.push_back(std::move(facts[index]));
  }
  // If a thread was made after the first samples, `round` does not have it. Then the process has a thread besides the
  // stuck ones.
  const auto now = proc::list_numbers(proc::proc_path(pid, "task")).numbers;
  const auto is_known = [&](std::int32_t tid) {
    return std::ranges::find(round->threads, tid, &proc::ThreadSample::tid) != round->threads.end();
  };
  stuck.are_all = stuck.threads.size() == living && std::ranges::all_of(now, is_known);
  return stuck;
}

}  // namespace forksight::watch
