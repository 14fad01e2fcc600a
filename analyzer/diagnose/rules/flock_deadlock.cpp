// Processes wait in a ring, and at least one of them waits for a file lock. If the ring consists only of fcntl() locks
// that belong to processes, the kernel refuses it. The kernel does not look for other rings.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void flock_deadlock(const Evidence& evidence, FindingList& findings) {
  cycles::OtherFindings others(evidence);
  for (cycles::Cycle cycle : evidence.cycles()) {
    if ((!cycles::has_via(cycle, "flock") && !cycles::has_via(cycle, "fcntl")) || others.explain(cycle, findings))
      continue;
    const auto is_lock = [](const cycles::Link& link) { return link.wait->kind == model::WaitKind::kFileLock; };
    std::rotate(cycle.begin(), std::ranges::find_if(cycle, is_lock), cycle.end());
    const cycles::Link& first = cycle.front();
    Finding finding = cycles::begin_finding("flock-deadlock", evidence, cycle);
    const model::Process& process = evidence.process(finding.process);
    const std::string file = cycles::object(*first.wait);
    finding.culprit.kind = CulpritKind::kFileLock;
    finding.culprit.name = file;
    finding.culprit.holder = cycles::holder(evidence, cycle, 0);
    const std::string where = words::at(" at ", first.wait->stack);
    finding.summary = cycle.size() == 1
                          ? fmt::format("{} {} locking {}{}: it holds that lock already, by another descriptor",
                                        evidence.name(finding.process), hangs(process), file, where)
                          : fmt::format("{} {} locking {}{}: process {} holds it and waits for {} in turn",
                                        evidence.name(finding.process), hangs(process), file, where, first.waker->pid,
                                        evidence.name(finding.process));
    cycles::tell(evidence, cycle, finding);
    add_sentence(finding, cycles::has_via(cycle, "flock")
                              ? "The kernel does not look for rings of flock() locks, so nothing ends this wait."
                              : "The kernel finds a ring that consists of fcntl() locks only, but not a ring that "
                                "contains another kind of wait, too.");
    finding.fixes.push_back({"Lock the files in one and the same order in all processes."});
    finding.fixes.push_back(
        {"Give the lock back before waiting for the other process; or ask with LOCK_NB (F_SETLK), and give back what "
         "is held if that fails."});
    if (cycle.size() == 1)
      finding.fixes.push_back(
          {"Open the file once: flock() locks belong to the open file, and two open files of one process exclude each "
           "other."});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
