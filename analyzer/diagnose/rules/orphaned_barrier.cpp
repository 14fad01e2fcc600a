// Some threads had arrived at a barrier before the fork, and the copy of the barrier in the child still counts them. If
// threads of the child complete the round that the lost threads began, the barrier lets them pass too early.
// pthread_barrier_destroy() waits until the lost threads have left, which never happens. The barrier counts the lost
// threads that had arrived, so it does not wait for them. If a wait at the barrier hangs, the barrier waits for a
// thread that had not arrived. Perhaps the fork left that thread behind, too, but nothing proves this.
#include <fmt/core.h>

#include "diagnose/locks.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

using locks::Orphan;
using model::SyncOperation;

std::optional<CallEnd> find_end(const Evidence& evidence, const model::Touch& touch) {
  if (touch.action != model::TouchAction::kNone) return locks::find_end(evidence, touch);
  const bool waits = touch.operation == SyncOperation::kWait;
  if (touch.returned) {
    if (!waits) return std::nullopt;
    return CallEnd{Certainty::kProven, Outcome::kCorruption};
  }
  const auto hang = evidence.find_hang(touch);
  if (!hang) return std::nullopt;
  // If the child is not proven dead, other threads of the child may still arrive.
  const model::Process& child = evidence.process(touch.process);
  const bool is_proven = is_proven_dead(child);
  if (waits && !is_proven) return CallEnd{Certainty::kLikely, Outcome::kMayHang};
  return CallEnd{*hang, Outcome::kHang};
}

// True if the fork also lost threads that had not arrived at the barrier.
bool has_lost_others(const model::Fork& fork, const Orphan& orphan) {
  return fork.lost_threads.size() + fork.unknown_threads > orphan.held.waiters;
}

Certainty find_cause(const Evidence& evidence, const model::Touch& touch, const CallEnd& end) {
  const bool is_incomplete = end.outcome != Outcome::kCorruption && touch.operation == SyncOperation::kWait;
  return is_incomplete ? Certainty::kPossible : evidence.find_cause(touch);
}

std::string describe_barrier(const Evidence& evidence, const model::Touch& touch, const Orphan& orphan,
                             const CallEnd& end) {
  const std::string child = evidence.name(touch.process);
  const std::string name = words::lock(orphan.lock);
  const char* const verb = touch.operation == SyncOperation::kDestroy ? "destroying" : "waiting at";
  std::string place = words::place(touch.stack);
  if (!place.empty()) place = fmt::format(" ({})", place);
  switch (end.outcome) {
    case Outcome::kCorruption:
      return fmt::format("{} passed {}{} too early: the barrier counted threads that do not exist in the child", child,
                         name, place);
    case Outcome::kError: return fmt::format("{} was aborted by --on-orphan=abort {} {}{}", child, verb, name, place);
    case Outcome::kMayHang: return fmt::format("{} is still {} {}{}, likely for ever", child, verb, name, place);
    default: return fmt::format("{} {} {} {}{}", child, hangs(evidence.process(touch.process)), verb, name, place);
  }
}

}  // namespace

void orphaned_barrier(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    if (touch.kind != model::TouchKind::kBarrier) continue;
    const auto orphan = locks::find_awaited(evidence, touch);
    if (!orphan) continue;
    const auto end = find_end(evidence, touch);
    if (!end) continue;
    const model::Process& child = evidence.process(touch.process);
    const model::Fork& fork = evidence.fork(touch);
    const bool is_many = orphan->held.waiters > 1;
    Finding finding = evidence.begin_finding("orphaned-barrier", touch);
    finding.harm = end->harm;
    finding.cause = find_cause(evidence, touch, *end);
    finding.outcome = end->outcome;
    finding.culprit = locks::describe_lock(evidence, *orphan);
    finding.summary = fmt::format("{}: {} had arrived there{} and {} left behind by fork(){}",
                                  describe_barrier(evidence, touch, *orphan, *end), locks::name_waiters(*orphan),
                                  words::at(" at ", orphan->held.acquired_at), is_many ? "were" : "was",
                                  words::at(" at ", fork.stack));
    const std::string where = words::place_with_function(touch.stack);
    add_sentence(finding, fmt::format("Thread {} of {} is {}{} {}.", touch.tid, evidence.name(touch.process),
                                      where.empty() ? where : fmt::format("at {}, ", where),
                                      touch.operation == SyncOperation::kDestroy ? "destroying" : "waiting at",
                                      words::lock(orphan->lock)));
    if (end->outcome == Outcome::kHang) add_sentence(finding, evidence.describe_liveness(child));
    add_sentence(finding, fmt::format("At the fork {} of {} had arrived there and waited for the others.",
                                      locks::name_waiters(*orphan), words::parent(evidence.process(fork.process))));
    add_sentence(finding, fmt::format("fork(){} copied the count of arrivals, but only the thread that called fork.",
                                      words::at(" at ", fork.stack)));
    if (touch.operation == SyncOperation::kDestroy) {
      add_sentence(
          finding,
          "pthread_barrier_destroy() waits until all threads that arrived have left. The lost threads never will.");
    } else if (end->outcome == Outcome::kCorruption) {
      add_sentence(finding, "The round was complete although fewer threads than the barrier asks for were there.");
    } else {
      add_sentence(
          finding,
          fmt::format("The round still needs at least one more thread.{}",
                      has_lost_others(fork, *orphan) ? " It may be another thread that the fork left behind." : ""));
    }
    add_sentence(finding, describe_end(child));
    finding.fixes.push_back(
        {fmt::format(
             "Make {} anew in the child, in a pthread_atfork() child handler: pthread_barrier_init() with the count "
             "of the child's own threads, without a destroy before it.",
             words::lock(orphan->lock)),
         true});
    finding.fixes.push_back({"Exec right after fork(), or use posix_spawn()."});
    finding.fixes.push_back({fmt::format("Fork before {} is started, or while no thread is at the barrier.",
                                         words::thread(orphan->holder))});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
