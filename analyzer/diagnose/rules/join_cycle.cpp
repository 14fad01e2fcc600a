// Threads that wait for each other's end, or one that waits for the end of another which needs a lock that it holds.
#include <fmt/core.h>

#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void join_cycle(const Evidence& evidence, std::vector<Finding>& findings) {
  for (const cycles::Cycle& cycle : cycles::find_cycles(evidence.model())) {
    if (!cycles::has_via(cycle, "join") || !cycles::is_made_of(cycle, {"join", "mutex", "rwlock"})) continue;
    if (cycles::is_told_elsewhere(evidence, cycle, findings)) continue;
    const bool has_lock = cycles::has_via(cycle, "mutex") || cycles::has_via(cycle, "rwlock");
    Finding finding = cycles::begin_finding("join-cycle", evidence, cycle);
    std::string ring;
    for (const cycles::Link& link : cycle) {
      const bool joins = link.waker->via == "join";
      const std::string what =
          joins ? fmt::format("joins thread {}", link.waker->tid) : "waits for " + cycles::object(*link.wait);
      ring += fmt::format("{}{} {}", ring.empty() ? "" : ", ", cycles::thread(evidence, link, false), what);
    }
    finding.summary = fmt::format("{} in pthread_join(): {}", cycles::hanging(evidence, cycle), ring);
    finding.culprit.kind = CulpritKind::kThread;
    finding.culprit.name = "threads that wait for each other's end";
    if (has_lock) finding.culprit = cycles::culprit_lock(evidence, cycle);
    cycles::tell(evidence, cycle, finding);
    if (has_lock) {
      add_sentence(finding, "The thread that is to end needs a lock first that the one who joins it keeps.");
      finding.fixes.push_back({"Give the lock back before pthread_join() or std::thread::join()."});
      finding.fixes.push_back(
          {"Let the thread see that it is to end (a flag, a closed queue) without taking that lock."});
    } else {
      add_sentence(finding, "None of them ends before another one has ended.");
      finding.fixes.push_back({"Join from one place only: from the thread that made the others."});
      finding.fixes.push_back({"Where a thread must outlive the one that made it: pthread_detach()."});
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
