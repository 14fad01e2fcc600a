// At the fork, other threads waited on a condition variable. The copy of the condition variable in the child still
// counts these threads. These lost waiters never leave. So a call hangs if it waits until they have left.
// pthread_cond_destroy() always waits for this. glibc keeps the waiters in two groups: signals go to the first group,
// and new waiters join the second. Up to glibc 2.40, a call that signals or broadcasts may have to switch the groups.
// Then the call waits until all waiters have left the first group. A signal may also go to a lost waiter, so that a
// waiter of the child sleeps on.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/locks.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

using locks::Orphan;
using model::SyncOperation;

constexpr std::uint64_t kConditionBytes = 48;

const char* verb_of(SyncOperation operation) {
  switch (operation) {
    case SyncOperation::kSignal: return "signalling";
    case SyncOperation::kBroadcast: return "broadcasting to";
    default: return "destroying";
  }
}

bool sleeps_in(const model::Process& process, const model::Lock& condition) {
  return std::ranges::any_of(process.waits, [&](const model::Wait& wait) {
    return wait.kind == model::WaitKind::kFutex && wait.object >= condition.address &&
           wait.object - condition.address < kConditionBytes;
  });
}

std::optional<CallEnd> find_end(const Evidence& evidence, const model::Touch& touch, const Orphan& orphan) {
  if (touch.action != model::TouchAction::kNone) return locks::find_end(evidence, touch);
  if (!touch.is_stolen) {
    const auto hang = touch.returned ? std::nullopt : evidence.find_hang(touch);
    return hang ? std::optional(CallEnd{*hang, Outcome::kHang}) : std::nullopt;
  }
  // The signal went to a lost waiter, and the call has returned. If no waiter of the child still sleeps on the
  // condition variable, later signals may have made up for the lost one.
  const model::Process& child = evidence.process(touch.process);
  if (!sleeps_in(child, orphan.lock)) return std::nullopt;
  if (no_signal_can_wake(child)) return CallEnd{Certainty::kProven, Outcome::kHang};
  if (is_proven_dead(child)) return CallEnd{Certainty::kLikely, Outcome::kMayHang};
  return std::nullopt;
}

std::string describe_condvar(const Evidence& evidence, const model::Touch& touch, const Orphan& orphan,
                             const CallEnd& end) {
  const std::string child = evidence.name(touch.process);
  const std::string name = words::lock(orphan.lock);
  const char* const verb = verb_of(touch.operation);
  std::string place = words::place(touch.stack);
  if (!place.empty()) place = fmt::format(" ({})", place);
  const std::string_view hangs_now = hangs(evidence.process(touch.process));
  if (end.outcome == Outcome::kCured) {
    return touch.is_stolen
               ? fmt::format("{} would have lost the wake-up of {}{}; cured: forksight made it anew", child, name,
                             place)
               : fmt::format("{} would have hung {} {}{}; cured: forksight made it anew", child, verb, name, place);
  }
  if (end.outcome == Outcome::kError)
    return fmt::format("{} was aborted by --on-orphan=abort {} {}{}", child, verb, name, place);
  if (touch.is_stolen) return fmt::format("{} {} waiting on {}: its wake-up{} was lost", child, hangs_now, name, place);
  return fmt::format("{} {} {} {}{}", child, hangs_now, verb, name, place);
}

std::string cause_of(const Evidence& evidence, const model::Touch& touch, const Orphan& orphan) {
  return fmt::format("{} waited on it{} and {} left behind by fork(){}", locks::name_waiters(orphan),
                     words::at(" at ", orphan.held.acquired_at), orphan.held.waiters > 1 ? "were" : "was",
                     words::at(" at ", evidence.fork(touch).stack));
}

const char* describe_block(const model::Touch& touch) {
  if (touch.is_stolen)
    return "The signal went to one of these, which waited first. The waiting thread of the child got none.";
  if (touch.operation == SyncOperation::kDestroy)
    return "pthread_cond_destroy() waits until all waiters have left. The lost waiters never will. Destructors of "
           "condition variables do this, too, also those that exit() runs.";
  return "Before a new group of waiters can be woken, the group before it must have left. Its members never will.";
}

void tell(const Evidence& evidence, const model::Touch& touch, const Orphan& orphan, const CallEnd& end,
          Finding& finding) {
  const model::Process& child = evidence.process(touch.process);
  const model::Fork& fork = evidence.fork(touch);
  const std::string name = words::lock(orphan.lock);
  const std::string where = words::place_with_function(touch.stack);
  if (touch.is_stolen) {
    add_sentence(finding, fmt::format("Thread {} of {} signalled {}{}, where a thread of the child waited.", touch.tid,
                                      evidence.name(touch.process), name, where.empty() ? where : " at " + where));
  } else {
    add_sentence(finding,
                 fmt::format("Thread {} of {} is {}{} {}.", touch.tid, evidence.name(touch.process),
                             where.empty() ? where : fmt::format("at {}, ", where), verb_of(touch.operation), name));
  }
  if (end.outcome == Outcome::kHang || end.outcome == Outcome::kMayHang)
    add_sentence(finding, evidence.describe_liveness(child));
  add_sentence(finding, fmt::format("At the fork {} waited on it{}: {} of {}.",
                                    words::count(orphan.held.waiters, "thread", "threads"),
                                    words::at(" at ", orphan.held.acquired_at), locks::name_waiters(orphan),
                                    words::parent(evidence.process(fork.process))));
  add_sentence(finding, fmt::format("fork(){} copied the count of waiters, but only the thread that called fork.",
                                    words::at(" at ", fork.stack)));
  add_sentence(finding, describe_block(touch));
  if (end.outcome == Outcome::kCured) {
    add_sentence(finding,
                 "forksight made it anew in the child, with its clock, before the child used it. That is sound: a "
                 "condition variable holds nothing but its waiters, and the child had none.");
  }
  add_sentence(finding, touch.action == model::TouchAction::kAborted
                            ? "forksight ended the child here (--on-orphan=abort), so that it fails instead of hanging."
                            : describe_end(child));
}

void add_fixes(const model::Touch& touch, const Orphan& orphan, const CallEnd& end, Finding& finding) {
  const std::string name = words::lock(orphan.lock);
  finding.fixes.push_back(
      {fmt::format(
           "Make {} anew in the child, in a pthread_atfork() child handler: pthread_cond_init() without a destroy "
           "before it, or placement new for a std::condition_variable.",
           name),
       true});
  if (touch.operation == SyncOperation::kDestroy)
    finding.fixes.push_back(
        {"Leave the child by _exit() or exec, so that no destructor of the parent's objects runs."});
  finding.fixes.push_back(
      {fmt::format("Fork before {} is started, or end the pool in prepare and start it again in parent and child.",
                   words::thread(orphan.holder))});
  if (end.outcome != Outcome::kCured) {
    finding.fixes.push_back(
        {"To keep a job running for now: `forksight run --cure=condvars -- ...` makes it anew in the child.", true});
  }
}

}  // namespace

void orphaned_condvar(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    if (touch.kind != model::TouchKind::kCondition) continue;
    const auto orphan = locks::find_awaited(evidence, touch);
    if (!orphan) continue;
    const auto end = find_end(evidence, touch, *orphan);
    if (!end) continue;
    Finding finding = evidence.begin_finding("orphaned-condvar", touch);
    finding.harm = end->harm;
    finding.cause = evidence.find_cause(touch);
    finding.outcome = end->outcome;
    finding.culprit = locks::describe_lock(evidence, *orphan);
    finding.summary =
        fmt::format("{}: {}", describe_condvar(evidence, touch, *orphan, *end), cause_of(evidence, touch, *orphan));
    tell(evidence, touch, *orphan, *end, finding);
    add_fixes(touch, *orphan, *end, finding);
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
