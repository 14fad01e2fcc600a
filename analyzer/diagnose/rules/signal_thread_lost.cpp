// The parent has a thread that takes signals by sigwait(). fork() did not copy this thread. One of these signals is
// pending in the child, and all threads of the child block it. If the child sleeps for ever, it is proven that nobody
// ever takes the signal. If the child goes on, it could still unblock the signal.
#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

#include "diagnose/evidence.hpp"
#include "diagnose/pools.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

bool takes(const model::LostWait& wait, std::uint64_t signals) {
  return wait.kind == model::AwaitedKind::kSignals && (wait.object & signals) != 0;
}

// True if all lost threads waited for signals. In this case the child must be waiting for something that one of these
// threads should have done.
bool lost_only_takers(const model::Fork& fork) {
  return fork.unknown_threads == 0 && std::ranges::all_of(fork.lost_threads, [&](model::ThreadId id) {
           return std::ranges::any_of(fork.lost_waits, [&](const model::LostWait& wait) {
             return wait.thread == id && wait.kind == model::AwaitedKind::kSignals;
           });
         });
}

Finding describe(const Evidence& evidence, const model::Fork& fork, const model::LostWait& taker) {
  const model::Process& child = evidence.process(*fork.child);
  const model::Thread& thread = evidence.model().threads[taker.thread];
  const std::uint64_t pending = child.unheard_signals & taker.object;
  const bool is_one = (pending & (pending - 1)) == 0;
  const std::string names = words::signals(pending);
  Finding finding = evidence.begin_finding("signal-thread-lost", fork);
  if (is_proven_dead(child)) {
    pools::set_certainty(child, finding);
  } else {
    finding.harm = Certainty::kLikely;
    finding.outcome = Outcome::kMayHang;
  }
  finding.cause = Certainty::kLikely;
  finding.culprit.kind = CulpritKind::kThread;
  finding.culprit.name = fmt::format("the thread that takes {}", words::signals(taker.object));
  finding.culprit.holder = evidence.holder(thread);
  finding.culprit.library = thread.start_library;
  finding.culprit.stack = thread.created_at;
  finding.summary = fmt::format("{} does not take {}: {}, which waits for {} in {}, was not copied by fork(){}",
                                evidence.name(*fork.child), names, words::thread(thread), is_one ? "it" : "them",
                                words::parent(evidence.process(fork.process)), words::at(" at ", fork.stack));
  const std::string since =
      child.unheard_for_ms > 0 ? fmt::format(" for {}", words::duration(child.unheard_for_ms)) : std::string();
  add_sentence(finding, fmt::format("{} {} pending in {}{}, and all its threads block {}.", names,
                                    is_one ? "has been" : "have been", evidence.name(*fork.child), since,
                                    is_one ? "it" : "them"));
  add_sentence(finding, evidence.describe_liveness(child));
  add_sentence(finding, fmt::format("It was forked{} from {}, where {} waits in sigwait() for {}.",
                                    words::at(" at ", fork.stack), words::parent(evidence.process(fork.process)),
                                    words::thread(thread), words::signals(taker.object)));
  add_sentence(finding,
               "The child has the signal mask of the thread that forked it, but not the thread that takes the blocked "
               "signals. A process that sends such a signal and waits for its effect waits in vain.");
  add_sentence(finding, describe_end(child));
  finding.fixes.push_back(
      {"Start such a thread in the child, too: right after fork(), or by a child handler of pthread_atfork().", true});
  finding.fixes.push_back(
      {"In the child, first set what these signals do there, then unblock them (sigprocmask()). With SIG_DFL they end "
       "the child."});
  return finding;
}

}  // namespace

void signal_thread_lost(const Evidence& evidence, FindingList& findings) {
  std::unordered_set<model::ProcessId> explained;
  for (const Finding& finding : findings) {
    if (finding.outcome == Outcome::kHang || finding.outcome == Outcome::kMayHang) explained.insert(finding.process);
  }
  for (const model::Fork& fork : evidence.model().forks) {
    const model::Process* const child = evidence.find_untouched_child(fork);
    if (child == nullptr || child->unheard_signals == 0 || evidence.is_in_handler(*fork.child)) continue;
    if (is_proven_dead(*child) && !lost_only_takers(fork)) continue;
    if (explained.contains(*fork.child)) continue;
    const auto taker = std::ranges::find_if(
        fork.lost_waits, [&](const model::LostWait& wait) { return takes(wait, child->unheard_signals); });
    if (taker == fork.lost_waits.end()) continue;
    findings.push_back(describe(evidence, fork, *taker));
    explained.insert(*fork.child);
  }
}

}  // namespace forksight::rules
