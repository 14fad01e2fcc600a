// The first thread that reaches a static variable of a function initialises the variable. Other threads wait until the
// variable is initialised. If a process forks while a thread initialises a variable, the child inherits a guard
// variable that says "in progress". But the child does not have the thread that would finish the initialisation.
#include <fmt/core.h>

#include "diagnose/locks.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

std::string summarise(const Evidence& evidence, const model::Touch& touch, const locks::Orphan& orphan,
                      const CallEnd& end) {
  if (evidence.find_cause(touch) == Certainty::kPossible) {
    return fmt::format("{}: {}", locks::head(evidence, touch, orphan.lock, end, "waiting for"),
                       locks::cause(evidence, touch, orphan));
  }
  const std::string began = words::place(orphan.held.acquired_at);
  if (orphan.holder.has_ended) {
    return fmt::format("{}: {} began to initialise it{} and ended in the middle",
                       locks::head(evidence, touch, orphan.lock, end, "waiting for"), words::thread(orphan.holder),
                       began.empty() ? began : " at " + began);
  }
  return fmt::format("{}: {} was initialising it{} and was left behind by fork(){}",
                     locks::head(evidence, touch, orphan.lock, end, "waiting for"), words::thread(orphan.holder),
                     began.empty() ? began : fmt::format(" ({})", began),
                     words::at(" at ", evidence.fork(touch).stack));
}

void tell(const Evidence& evidence, const model::Touch& touch, const locks::Orphan& orphan, const CallEnd& end,
          Finding& finding) {
  const model::Process& child = evidence.process(touch.process);
  const model::Fork& fork = evidence.fork(touch);
  const std::string where = words::place_with_function(touch.stack);
  add_sentence(finding, fmt::format("Thread {} of {} is {}waiting until {} is initialised.", touch.tid,
                                    evidence.name(touch.process), where.empty() ? where : fmt::format("at {}, ", where),
                                    words::lock(orphan.lock)));
  if (end.outcome == Outcome::kHang) add_sentence(finding, evidence.describe_liveness(child));
  if (evidence.find_cause(touch) == Certainty::kPossible) {
    add_sentence(finding, locks::reason_for_doubt(orphan));
    add_sentence(finding, describe_end(child));
    return;
  }
  add_sentence(
      finding,
      fmt::format(
          "{}{} of {}{} was in the middle of that{}.", orphan.holder.has_ended ? "Before the fork " : "At the fork ",
          words::thread(orphan.holder), words::parent(evidence.process(fork.process)),
          orphan.holder.start_routine.empty() ? std::string() : ", started with " + orphan.holder.start_routine + ",",
          words::at(", which it began at ", orphan.held.acquired_at)));
  if (orphan.holder.has_ended) {
    add_sentence(finding,
                 "That thread ended before it was done. Nobody can finish it any more, neither in the parent nor in "
                 "the child: the fork is not the cause.");
    add_sentence(finding, describe_end(child));
    return;
  }
  add_sentence(finding, fmt::format("fork(){} copied the guard variable, which says that the initialisation is in "
                                    "progress, but not that thread: in the child the initialisation never ends.",
                                    words::at(" at ", fork.stack)));
  if (end.outcome == Outcome::kCured) {
    add_sentence(
        finding,
        "forksight reset the guard (--on-orphan=recover): the child initialises the static again, in the same memory "
        "in which the other thread had begun. Other data that this thread was changing may be half-changed.");
  }
  if (touch.action == model::TouchAction::kAborted) {
    add_sentence(finding, "forksight ended the child here (--on-orphan=abort), so that it fails instead of hanging.");
  } else {
    add_sentence(finding, describe_end(child));
  }
}

}  // namespace

void interrupted_static_init(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    const auto orphan = locks::find_orphan(evidence, touch);
    if (!orphan || orphan->lock.kind != model::LockKind::kGuard) continue;
    const auto end = locks::find_end(evidence, touch);
    if (!end) continue;
    Finding finding = evidence.begin_finding("interrupted-static-init", touch);
    finding.harm = end->harm;
    finding.cause = evidence.find_cause(touch);
    finding.outcome = end->outcome;
    finding.culprit = locks::describe_lock(evidence, *orphan);
    finding.culprit.name = words::lock(orphan->lock);
    finding.summary = summarise(evidence, touch, *orphan, *end);
    tell(evidence, touch, *orphan, *end, finding);
    finding.fixes.push_back(
        {fmt::format("Use {} once before fork(), or before the other threads start: then it is initialised.",
                     words::lock(orphan->lock))});
    finding.fixes.push_back({"Exec right after fork(), or use posix_spawn(): then no static of the parent matters."});
    finding.fixes.push_back({"Initialise it without a lock: `constinit`, or a global with a constant initialiser."});
    if (touch.action == model::TouchAction::kNone) {
      finding.fixes.push_back(
          {"To keep a job running for now: `forksight run --on-orphan=recover -- ...` lets the child initialise it. "
           "Whatever the other thread had allocated or registered by then stays."});
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
