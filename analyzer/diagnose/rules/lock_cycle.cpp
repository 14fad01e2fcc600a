// Threads wait in a ring of locks: each thread holds the lock for which the previous thread waits. The ring may consist
// of two threads (AB-BA) or more. The threads may be in one process, or in several processes that share the locks. The
// proof comes from outside: each lock records its owner, and each owner sleeps until it gets the next lock.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

bool has_shared_lock(const cycles::Cycle& cycle) {
  for (const cycles::Link& link : cycle) {
    if (link.wait->is_shared) return true;
  }
  return false;
}

}  // namespace

void lock_cycle(const Evidence& evidence, FindingList& findings) {
  cycles::OtherFindings others(evidence);
  for (const cycles::Cycle& cycle : evidence.cycles()) {
    if (cycle.size() < 2 || !cycles::is_made_of(cycle, {"mutex", "rwlock", "GIL", model::kViaSemaphoreLock})) continue;
    if (others.explain(cycle, findings)) continue;
    Finding finding = cycles::begin_finding("lock-cycle", evidence, cycle);
    const bool names_process = !cycles::is_of_one_process(cycle);
    std::string ring;
    for (const cycles::Link& link : cycle) {
      ring +=
          fmt::format("{}{} waits for {}{}", ring.empty() ? "" : ", ", cycles::thread(evidence, link, names_process),
                      cycles::object(*link.wait), words::at(" at ", link.wait->stack));
    }
    const model::Process& process = evidence.process(finding.process);
    finding.summary =
        fmt::format("{} threads {} in a ring of locks{}: {}", cycle.size(), has_ended(process) ? "hung" : "hang",
                    names_process ? "" : fmt::format(" in {}", evidence.name(finding.process)), ring);
    finding.culprit = cycles::culprit_lock(evidence, cycle);
    cycles::tell(evidence, cycle, finding);
    add_sentence(
        finding,
        "Each of them holds a lock that another one of them waits for. So none of them ever releases its lock.");
    if (cycles::has_via(cycle, "GIL")) {
      cycles::advise_on_gil(finding);
    } else if (cycles::has_via(cycle, model::kViaSemaphoreLock)) {
      finding.fixes.push_back({"Take these locks in one and the same order in all processes."});
      finding.fixes.push_back(
          {"Give the first lock back before the second one is taken; or try the second (acquire(timeout=...)) and, if "
           "that fails, give the first one back."});
    } else {
      finding.fixes.push_back(
          {"Take these locks in one and the same order everywhere, or all at once: std::scoped_lock(a, b)."});
      finding.fixes.push_back(
          {"Give the first lock back before the second one is taken; or try the second "
           "(pthread_mutex_trylock()) and, if that fails, give the first one back."});
    }
    if (has_shared_lock(cycle) && !cycles::has_via(cycle, model::kViaSemaphoreLock)) {
      finding.fixes.push_back(
          {"Make locks in shared memory robust (pthread_mutexattr_setrobust()): if one process is then ended, the "
           "others get its locks."});
    }
    const auto is_stream = [](const cycles::Link& link) { return link.wait->object_name.starts_with("_IO_stdfile_"); };
    if (std::ranges::any_of(cycle, is_stream)) {
      finding.fixes.push_back(
          {"flockfile() locks a stream, and so does each call that prints or reads. Take the other lock before such a "
           "call, or release the other lock first."});
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
