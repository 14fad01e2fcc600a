// A thread waits for a mutex that it holds itself: locked twice, and not a recursive one.
#include <fmt/core.h>

#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void self_deadlock(const Evidence& evidence, std::vector<Finding>& findings) {
  for (const cycles::Cycle& cycle : cycles::find_cycles(evidence.model())) {
    if (cycle.size() != 1 || !cycles::has_via(cycle, "mutex") || cycles::is_told_elsewhere(evidence, cycle, findings))
      continue;
    const cycles::Link& link = cycle.front();
    Finding finding = cycles::begin_finding("self-deadlock", evidence, cycle);
    const std::string name = cycles::object(*link.wait);
    const bool is_inherited = link.wait->is_inherited;
    finding.summary = fmt::format("{} locking {}: {} holds it already{}", cycles::hanging(evidence, cycle), name,
                                  cycles::thread(evidence, link, false), is_inherited ? ", since before its fork" : "");
    finding.culprit = cycles::culprit_lock(evidence, cycle);
    cycles::tell(evidence, cycle, finding);
    add_sentence(
        finding,
        "It is no recursive mutex: its owner, too, waits until it is unlocked, and only its owner could do that.");
    if (is_inherited) {
      add_sentence(
          finding,
          "Its memory names the number that this thread had in the process that forked: the copy of the thread "
          "has the copy of the lock, and did not give it back before it locked it again.");
      finding.fixes.push_back({fmt::format(
          "In the child, unlock {} before it is locked again: in a pthread_atfork() child handler, or behind fork().",
          name)});
    }
    if (cycles::goes_on(evidence, link)) {
      add_sentence(
          finding,
          "Unless another thread unlocks it in place of its owner, as some programs do: POSIX leaves undefined "
          "what happens then.");
    }
    finding.fixes.push_back(
        {fmt::format("Do not call what locks {} while it is held: split off a function that expects it to be "
                     "held, and call that from both places.",
                     name)});
    finding.fixes.push_back(
        {"If a callback or a signal handler locked it again: call the callback after the lock was given back."});
    finding.fixes.push_back(
        {"A recursive mutex (std::recursive_mutex) hides it: what the lock protects may be half-changed then."});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
