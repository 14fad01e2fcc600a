// Another thread held a spinlock at the fork. A thread of the child spins for ever and uses a whole CPU.
#include <fmt/core.h>

#include "diagnose/locks.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

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
    finding.culprit = locks::describe_lock(evidence, *orphan);
    finding.summary = fmt::format("{}: {}", locks::head(evidence, touch, orphan->lock, *end, "spinning for"),
                                  locks::cause(evidence, touch, *orphan));
    locks::tell(evidence, touch, *orphan, *end, "spinning for",
                "It does not sleep: it takes a whole CPU, and looks busy in top.", finding);
    locks::add_fixes(evidence.process(touch.process), touch, *orphan, "unlock it", finding);
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
