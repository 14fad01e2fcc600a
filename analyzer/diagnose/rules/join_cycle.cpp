// Threads wait for each other to end. Or a thread waits for the end of another thread, and that other thread needs a
// lock that the waiting thread holds. The rule treats processes that wait for the end of a child in the same way.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void join_cycle(const Evidence& evidence, FindingList& findings) {
  cycles::OtherFindings others(evidence);
  for (cycles::Cycle cycle : evidence.cycles()) {
    const bool has_child = cycles::has_via(cycle, "wait4");
    if (!has_child && !cycles::has_via(cycle, "join")) continue;
    if (!cycles::is_made_of(cycle, {"join", "wait4", "mutex", "rwlock", "GIL", model::kViaSemaphoreLock})) continue;
    if (others.explain(cycle, findings)) continue;
    const bool has_gil = cycles::has_via(cycle, "GIL");
    const bool has_lock = cycles::has_via(cycle, "mutex") || cycles::has_via(cycle, "rwlock") ||
                          cycles::has_via(cycle, model::kViaSemaphoreLock) || has_gil;
    // If the ring contains a wait for a child, the description begins with a link that waits for the end of a process
    // or thread.
    const auto waits_for_end = [](const cycles::Link& link) {
      return link.waker->via == "join" || link.waker->via == "wait4";
    };
    if (has_child) std::rotate(cycle.begin(), std::ranges::find_if(cycle, waits_for_end), cycle.end());
    Finding finding = cycles::begin_finding("join-cycle", evidence, cycle);
    std::string ring;
    for (const cycles::Link& link : cycle) {
      std::string what = "waits for " + cycles::object(*link.wait);
      if (link.waker->via == "join") what = fmt::format("joins thread {}", link.waker->tid);
      if (link.waker->via == "wait4") what = fmt::format("waits for the end of process {}", link.waker->pid);
      ring += fmt::format("{}{} {}{}", ring.empty() ? "" : ", ", cycles::thread(evidence, link, has_child), what,
                          words::at(" at ", link.wait->stack));
    }
    finding.summary = fmt::format("{} in {}: {}", cycles::hanging(evidence, cycle),
                                  cycle.front().waker->via == "wait4" ? "waitpid()" : "pthread_join()", ring);
    finding.culprit.kind = CulpritKind::kThread;
    finding.culprit.name =
        has_child ? "processes that wait for each other's end" : "threads that wait for each other's end";
    if (has_lock) finding.culprit = cycles::culprit_lock(evidence, cycle);
    cycles::tell(evidence, cycle, finding);
    if (has_lock) {
      add_sentence(
          finding,
          has_child
              ? "Before that process can end, it needs a lock. The lock is held by a thread that waits for this end."
              : "Before that thread can end, it needs a lock that the joining thread holds.");
      if (has_gil) cycles::advise_on_gil(finding);
      finding.fixes.push_back({has_child ? "Give the lock back before waiting for the child."
                                         : "Give the lock back before pthread_join() or std::thread::join()."});
      finding.fixes.push_back(
          {has_child ? "Tell the child to end in a way that does not need that lock."
                     : "Tell the thread to end in a way that does not need that lock: a flag, or a closed queue."});
    } else {
      add_sentence(finding, "Each of them waits until another one has ended.");
      finding.fixes.push_back({"Let only one thread join: the thread that made the others."});
      finding.fixes.push_back({"If a thread must outlive the thread that made it, call pthread_detach() for it."});
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
