// Another thread held a rwlock at the fork. If this thread was a writer, all threads of the child wait for it. If it
// was a reader, only writers wait for it.
#include <fmt/core.h>

#include "diagnose/locks.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void orphaned_rwlock(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    const auto orphan = locks::find_orphan(evidence, touch);
    if (!orphan) continue;
    const bool by_reader = orphan->lock.kind == model::LockKind::kRwlockRead;
    if (!by_reader && orphan->lock.kind != model::LockKind::kRwlockWrite) continue;
    const auto end = locks::find_end(evidence, touch);
    if (!end) continue;
    Finding finding = evidence.begin_finding("orphaned-rwlock", touch);
    finding.harm = end->harm;
    finding.cause = evidence.find_cause(touch);
    finding.outcome = end->outcome;
    finding.culprit = locks::describe_lock(evidence, *orphan);
    const bool is_known = finding.cause != Certainty::kPossible;
    finding.summary = fmt::format("{}: {}{}", locks::head(evidence, touch, orphan->lock, *end, "locking"),
                                  !is_known   ? ""
                                  : by_reader ? "reader "
                                              : "writer ",
                                  locks::cause(evidence, touch, *orphan));
    locks::tell(evidence, touch, *orphan, *end, "locking",
                !is_known   ? ""
                : by_reader ? "The lost reader is still counted: writers wait for it, readers of the child may enter."
                            : "The lost writer still owns it: readers and writers of the child wait for it.",
                finding);
    locks::add_fixes(evidence.process(touch.process), touch, *orphan,
                     "re-initialise it (an unlock there corrupts its count)", finding);
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
