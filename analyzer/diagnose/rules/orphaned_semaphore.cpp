// This rule reports a child that waits for a semaphore which another thread took before the fork. If the semaphore
// serves as a lock, nobody in the child posts it. But the memory of a semaphore names no owner. The semaphore may also
// serve as a notification. In that case, a thread of the child or a signal handler posts the semaphore later. So the
// rule calls a hang proven only if no thread of any process and no signal handler can wake the child. If a handler may
// post the semaphore, the rule reports nothing. The cause is never proven, because the thread that took the semaphore
// need not be the thread that should post it. If the program ran without the shim (libforksight.so), it is not even
// known whether any thread took the semaphore.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/locks.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void orphaned_semaphore(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    const auto orphan = locks::find_orphan(evidence, touch);
    if (!orphan || orphan->lock.kind != model::LockKind::kSemaphore) continue;
    if (words::is_python_semaphore(touch.stack)) continue;  // the rule python-lock-orphaned reports it
    // A signal interrupted the call: the call returned although it had no deadline, and although forksight did nothing
    // to the semaphore. Callers of sem_wait() then call sem_wait() again.
    if (touch.returned && !touch.timed && touch.action == model::TouchAction::kNone) continue;
    auto end = locks::find_end(evidence, touch);
    if (!end) continue;
    const model::Process& child = evidence.process(touch.process);
    const bool is_proven = no_signal_can_wake(child);
    // forksight saw this wait only from outside. So perhaps no thread ever took the semaphore. A healthy daemon may
    // look like this child: the daemon waits in sem_wait() until its handler of SIGTERM posts the semaphore.
    if (evidence.fork(touch).is_inferred && orphan->holder.tid == 0 && !is_proven) continue;
    // If a thread of the child goes on, it may post the semaphore.
    const bool process_goes_on = child.liveness == model::Liveness::kAwake ||
                                 child.liveness == model::Liveness::kSpinning ||
                                 child.liveness == model::Liveness::kStalled;
    if (end->outcome == Outcome::kHang && process_goes_on && !has_ended(child)) continue;
    if (end->outcome == Outcome::kHang && !is_proven) {
      if (has_way_out(child)) continue;  // a handler may post the semaphore: a healthy program waits like this
      *end = {Certainty::kLikely, Outcome::kMayHang};
    }
    // The call returned at its deadline. The fork need not be the reason: without the fork, the call might have reached
    // its deadline, too.
    if (touch.returned) end->harm = std::min(end->harm, Certainty::kLikely);
    Finding finding = evidence.begin_finding("orphaned-semaphore", touch);
    finding.harm = end->harm;
    finding.cause = evidence.find_cause(touch);
    finding.outcome = end->outcome;
    finding.culprit = locks::describe_lock(evidence, *orphan);
    const std::string head = end->outcome == Outcome::kMayHang
                                 ? fmt::format("{} waits for {}{}, {} for ever", evidence.name(touch.process),
                                               locks::name(touch, orphan->lock), words::at(" at ", touch.stack),
                                               end->harm == Certainty::kLikely ? "likely" : "possibly")
                                 : locks::head(evidence, touch, orphan->lock, *end, "waiting for");
    finding.summary = fmt::format("{}: {}", head, locks::cause(evidence, touch, *orphan));
    const char* const nature = is_proven ? "A semaphore has no owner, but no task is left that could post it."
                                         : "A semaphore has no owner: if it serves as a signal and not as a lock, some "
                                           "thread of the child may still post it.";
    locks::tell(evidence, touch, *orphan, *end, "waiting for", nature, finding);
    locks::add_fixes(child, touch, *orphan, "post it", finding);
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
