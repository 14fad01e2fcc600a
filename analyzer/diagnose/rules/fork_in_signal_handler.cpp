// A signal handler forked, and the child goes on inside of the handler. The code that the signal interrupted may hold a
// lock. Only this code would release the lock. But this code is on the child's own stack, outside of the handler. It
// goes on only after the handler has returned.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/libc_calls.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

// Returns the frames of the code that the signal interrupted. They are the frames outside of the handler.
model::Stack find_interrupted(const model::Stack& stack) {
  const auto at = std::ranges::find(stack.frames, model::kSignalFrame, &model::Frame::function);
  model::Stack interrupted;
  interrupted.cut = stack.cut;
  if (at != stack.frames.end()) interrupted.frames.assign(at + 1, stack.frames.end());
  return interrupted;
}

void add_fixes(Finding& finding) {
  finding.fixes.push_back(
      {"Let the handler only set a flag or write to a pipe, and fork outside of it (or take the signal by signalfd or "
       "sigwait)."});
  finding.fixes.push_back(
      {"In the child call nothing but async-signal-safe functions (signal-safety(7)), and leave by _exit().", true});
}

// Describes a child that hangs in a futex although no touch shows why.
Finding describe_untouched(const Evidence& evidence, const model::Fork& fork) {
  const model::Process& child = evidence.process(*fork.child);
  const model::Stack interrupted = find_interrupted(fork.stack);
  Finding finding = evidence.begin_finding("fork-in-signal-handler", fork);
  finding.harm = Certainty::kLikely;
  finding.cause = Certainty::kLikely;
  finding.outcome = Outcome::kHang;
  finding.culprit.kind = CulpritKind::kThread;
  finding.culprit.name = "the code that the signal interrupted";
  finding.culprit.stack = interrupted;
  finding.summary = fmt::format(
      "{} {} in a futex that no task can wake: it was forked in a signal handler{}, on top of what the signal "
      "interrupted{}",
      evidence.name(*fork.child), hangs(child), words::at(" at ", fork.stack), words::at(" at ", interrupted));
  add_sentence(finding, evidence.describe_liveness(child));
  add_sentence(finding, fmt::format("It was forked{} within a signal handler, which had interrupted its thread{}.",
                                    words::at(" at ", fork.stack), words::at(" at ", interrupted)));
  add_sentence(
      finding,
      "The child goes on within the handler: a lock that the interrupted code holds is not released before the "
      "handler returns. Which lock it waits for is not known.");
  add_sentence(finding, describe_end(child));
  add_fixes(finding);
  return finding;
}

}  // namespace

void fork_in_signal_handler(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  for (const model::Touch& touch : model.touches) {
    const auto lost = libc_calls::find_lost(model, touch);
    if (!lost || !libc_calls::is_in_handler(model, touch, *lost)) continue;
    const auto end = libc_calls::find_end(evidence, touch);
    if (!end) continue;
    Finding finding = libc_calls::describe(evidence, "fork-in-signal-handler", touch, *lost, *end);
    add_sentence(finding,
                 "A signal came during that call, and its handler forked: the call goes on only after the handler has "
                 "returned, in the child, too.");
    add_fixes(finding);
    findings.push_back(std::move(finding));
  }
  for (const model::Fork& fork : model.forks) {
    const model::Process* const child = evidence.find_untouched_child(fork);
    if (child == nullptr || evidence.find_open_wait(*fork.child) != nullptr) continue;
    if (is_dead_in_futex(*child) && words::is_in_signal_handler(fork.stack))
      findings.push_back(describe_untouched(evidence, fork));
  }
}

}  // namespace forksight::rules
