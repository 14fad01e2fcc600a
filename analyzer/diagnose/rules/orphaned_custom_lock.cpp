// At the fork, another thread held a lock that the program itself implements. The program annotates the lock by means
// of <forksight/annotate.h>. The annotations say which thread holds the lock, and which threads wait for it. The
// program decides whether a waiting thread sleeps or spins.
#include <fmt/core.h>

#include "diagnose/locks.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

void add_fixes(const model::Process& child, const model::Touch& touch, const locks::Orphan& orphan, Finding& finding) {
  const std::string name = words::lock(orphan.lock);
  finding.fixes.push_back({"Exec right after fork(), or use posix_spawn(): then no lock of the parent matters."});
  finding.fixes.push_back(
      {fmt::format("Guard {} with pthread_atfork(): lock it in the prepare handler, and unlock it in the parent "
                   "handler and in the child handler.",
                   name)});
  finding.fixes.push_back({fmt::format(
      "Or reset {} in a pthread_atfork() child handler, if what it protects can be reset with it.", name)});
  finding.fixes.push_back(
      {fmt::format("Fork before {} is started, while the process has one thread.", words::thread(orphan.holder))});
  if (touch.action == model::TouchAction::kNone && !touch.timed && !has_ended(child)) {
    finding.fixes.push_back({"To fail at once instead of hanging: `forksight run --on-orphan=abort -- ...`."});
  }
}

}  // namespace

void orphaned_custom_lock(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    const auto orphan = locks::find_orphan(evidence, touch);
    if (!orphan || orphan->lock.kind != model::LockKind::kCustom) continue;
    const auto end = locks::find_end(evidence, touch);
    if (!end) continue;
    const model::Process& child = evidence.process(touch.process);
    Finding finding = evidence.begin_finding("orphaned-custom-lock", touch);
    finding.harm = end->harm;
    finding.cause = evidence.find_cause(touch);
    finding.outcome = end->outcome;
    finding.culprit = locks::describe_lock(evidence, *orphan);
    // The stacks begin in the functions of the lock itself. But the sentences should name the places that use the lock.
    model::Touch used = touch;
    used.stack = words::without_lock_functions(touch.stack);
    model::Held held = orphan->held;
    held.acquired_at = words::without_lock_functions(held.acquired_at);
    const locks::Orphan told{held, orphan->lock, orphan->holder, orphan->fork};
    finding.summary = fmt::format("{}: {}", locks::head(evidence, used, orphan->lock, *end, "waiting for"),
                                  locks::cause(evidence, used, told));
    const char* const nature = child.liveness == model::Liveness::kSpinning
                                   ? "It does not sleep: it takes a whole CPU, and looks busy in top."
                                   : "The annotations of the lock said that it is held, and by whom.";
    locks::tell(evidence, used, told, *end, "waiting for", nature, finding);
    add_fixes(child, touch, *orphan, finding);
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
