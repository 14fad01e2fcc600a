#include "watch/proof.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "proc/process_traits.hpp"
#include "proc/thread_sample.hpp"
#include "proc/wait_class.hpp"
#include "watch/own_timers.hpp"
#include "watch/ways_out.hpp"

namespace forksight::watch {
namespace {

bool has_tids(const proc::Round& round, const std::vector<std::int32_t>& tids) {
  return std::equal(round.threads.begin(), round.threads.end(), tids.begin(), tids.end(),
                    [](const proc::ThreadSample& thread, std::int32_t tid) { return thread.tid == tid; });
}

// Returns "" if the wait of one thread proves that the thread is stuck. Otherwise returns the reason why the wait does
// not prove this. `lasting`: as in Proof.
std::string find_way_out(const ProcessEvidence& evidence, const proc::ThreadSample& thread, const WaitFacts& facts,
                         bool& lasting) {
  const proc::WaitTarget target = proc::classify(thread);
  if (const std::string_view hold = find_hold(facts.kernel_function); !hold.empty() && !thread.ended())
    return fmt::format("thread {} {}", thread.tid, hold);
  switch (target.kind) {
    case proc::WaitClass::kEnded: return "";
    case proc::WaitClass::kAwakable: return fmt::format("thread {} may go on", thread.tid);
    case proc::WaitClass::kChild:
    case proc::WaitClass::kRead:
    case proc::WaitClass::kWrite:
    case proc::WaitClass::kPoll:
    case proc::WaitClass::kFileLock:
    case proc::WaitClass::kVfork:
    case proc::WaitClass::kTraced:
      lasting = facts.is_open_to_all;
      if (!facts.wakers_known) return fmt::format("thread {} waits for something that is not known", thread.tid);
      break;
    case proc::WaitClass::kPlainFutex:
      if (facts.mapping != WordMapping::kPrivate && (facts.mapping != WordMapping::kShared || !facts.wakers_known)) {
        lasting = facts.mapping != WordMapping::kShared || facts.is_open_to_all;
        return fmt::format("thread {} waits on shared memory", thread.tid);
      }
      [[fallthrough]];
    case proc::WaitClass::kPrivateFutex: {
      const std::string& function = facts.kernel_function;
      const bool silent = function.empty() || function == "0" || target.priority_inherit;
      if (!silent && function.find("futex") == std::string::npos) {
        return fmt::format("thread {} sleeps in {}", thread.tid, function);
      }
      break;
    }
  }
  if (target.priority_inherit) {
    const auto is_owner = [&](const proc::ThreadSample& other) { return facts.pi_owner == other.tid; };
    if (!std::any_of(evidence.first.threads.begin(), evidence.first.threads.end(), is_owner)) {
      return fmt::format("thread {} waits for an owner that is not of its process", thread.tid);
    }
  }
  const std::uint64_t arriving = (thread.status.pending | thread.status.shared_pending) & ~thread.status.blocked;
  if (arriving != 0) return fmt::format("a signal is pending for thread {}", thread.tid);
  return "";
}

Proof refuse(std::string why, bool lasting = false) {
  Proof proof;
  proof.why_not = std::move(why);
  proof.lasting = lasting;
  return proof;
}

}  // namespace

bool is_unchanged(const proc::ThreadSample& before, const proc::ThreadSample& after) {
  if (before.tid != after.tid || before.ended() != after.ended()) return false;
  if (before.ended()) return true;
  return before.status.state == after.status.state && before.call == after.call &&
         before.status.voluntary == after.status.voluntary && before.status.nonvoluntary == after.status.nonvoluntary;
}

bool is_same_round(const proc::Round& before, const proc::Round& after) {
  return std::equal(before.threads.begin(), before.threads.end(), after.threads.begin(), after.threads.end(),
                    is_unchanged);
}

Proof prove(const ProcessEvidence& evidence) {
  if (evidence.is_incomplete) return refuse("something could not be read");
  if (!evidence.same_process) return refuse("the process ended");
  if (!evidence.is_x86_64) return refuse("not an x86-64 program", true);
  if (evidence.has_io_uring) return refuse("the process uses io_uring", true);
  if (evidence.is_frozen) return refuse("the control group of the process is frozen");
  if (evidence.sharing == proc::Sharing::kShared && evidence.sharers.empty())
    return refuse("another process shares the memory of the process", true);
  const proc::Round& first = evidence.first;
  const proc::Round& second = evidence.second;
  if (first.threads.empty() || evidence.facts.size() != first.threads.size()) return refuse("no thread was seen");
  if (!has_tids(first, evidence.tids_between) || !has_tids(second, evidence.tids_between)) {
    return refuse("threads came or went");
  }
  Proof proof;
  bool has_live_thread = false;
  for (std::size_t index = 0; index < first.threads.size(); ++index) {
    const proc::ThreadSample& thread = second.threads[index];
    if (!is_unchanged(first.threads[index], thread)) return refuse(fmt::format("thread {} ran", thread.tid));
    const WaitFacts& facts = evidence.facts[index];
    bool lasting = false;
    if (std::string way_out = find_way_out(evidence, thread, facts, lasting); !way_out.empty()) {
      return refuse(std::move(way_out), lasting);
    }
    if (thread.ended()) continue;
    has_live_thread = true;
    proof.wakers.insert(proof.wakers.end(), facts.wakers.begin(), facts.wakers.end());
  }
  if (!has_live_thread) return refuse("the process ended");
  const Handlers handlers = find_handlers(evidence);
  proof.handlers = handlers.ways_out;
  proof.timed = (handlers.ways_out & evidence.timed_signals) | find_ending_signals(evidence);
  proof.handler_could = handlers.ways_out != 0 || handlers.for_ctrl_c;
  proof.stuck = true;
  return proof;
}

}  // namespace forksight::watch
