// Another thread held a spinlock at the fork. A thread of the child spins for ever and uses a whole CPU.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/locks.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

// True if another thread of the process may hold the spinlock, sleep, and unlock the spinlock later. If the shim
// recorded the fork, it knows that a lost thread held the spinlock.
bool may_be_held_by_sleeper(const Evidence& evidence, const model::Touch& touch) {
  if (!evidence.fork(touch).is_inferred) return false;
  return std::ranges::any_of(evidence.model().threads, [&](const model::Thread& thread) {
    return thread.process == touch.process && thread.tid != touch.tid && !thread.has_ended;
  });
}

}  // namespace

void orphaned_spinlock(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    const auto orphan = locks::find_orphan(evidence, touch);
    if (!orphan || orphan->lock.kind != model::LockKind::kSpinlock) continue;
    const auto end = locks::find_end(evidence, touch);
    if (!end) continue;
    Finding finding = evidence.begin_finding("orphaned-spinlock", touch);
    finding.harm = end->harm;
    finding.cause = evidence.find_cause(touch);
    finding.outcome = end->outcome;
    const bool may_end = end->outcome == Outcome::kHang && may_be_held_by_sleeper(evidence, touch);
    if (may_end) {
      finding.harm = Certainty::kPossible;
      finding.outcome = Outcome::kMayHang;
    }
    finding.culprit = locks::describe_lock(evidence, *orphan);
    finding.summary = fmt::format("{}: {}", locks::head(evidence, touch, orphan->lock, *end, "spinning for"),
                                  locks::cause(evidence, touch, *orphan));
    locks::tell(evidence, touch, *orphan, *end, "spinning for",
                "It does not sleep: it takes a whole CPU, and looks busy in top.", finding);
    if (may_end) {
      add_sentence(finding,
                   "Other threads of this process sleep. If one of them holds the lock, it may still unlock it.");
    }
    locks::add_fixes(evidence.process(touch.process), touch, *orphan, "unlock it", finding);
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
