// A thread waits to write while a rwlock is held for reading by nobody who will ever let go: mostly by that thread
// itself. Readers have no name in a rwlock: only where no other thread is left is it certain that it is the writer's
// own.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void rwlock_upgrade(const Evidence& evidence, std::vector<Finding>& findings) {
  for (const cycles::Cycle& cycle : cycles::find_cycles(evidence.model())) {
    if (cycle.size() != 1 || !cycles::has_via(cycle, "rwlock") || cycles::is_told_elsewhere(evidence, cycle, findings))
      continue;
    const model::Wait& wait = *cycle.front().wait;
    if (wait.use != model::FutexUse::kRwlockWrite || wait.owner != 0 || wait.readers == 0) continue;
    Finding finding = cycles::begin_finding("rwlock-upgrade", evidence, cycle);
    const model::Process& process = evidence.process(finding.process);
    const auto threads = std::ranges::count_if(process.waits, [](const model::Wait& one) { return one.is_stuck; });
    // The end of the wait is ruled out either way; who holds it is not, if others could.
    if (threads > 1) finding.cause = Certainty::kLikely;
    const std::string name = cycles::object(wait);
    finding.summary =
        fmt::format("{} {} locking {} for writing: {} holds it for reading{}", evidence.name(finding.process),
                    hangs(process), name, cycles::thread(evidence, cycle.front(), false),
                    threads > 1 ? ", or another thread does that is stuck" : " itself");
    finding.culprit = cycles::culprit_lock(evidence, cycle);
    add_sentence(finding,
                 fmt::format("Thread {} waits to lock {} for writing, which {} {} for reading.", wait.tid, name,
                             words::count(wait.readers, "thread", "threads"), wait.readers == 1 ? "holds" : "hold"));
    add_sentence(finding, describe_liveness(process));
    add_sentence(
        finding,
        threads > 1
            ? "A rwlock does not tell who its readers are: it may be this thread, or another of those that wait."
            : "There is no other thread that could be its reader: it waits for itself to unlock.");
    add_sentence(
        finding,
        "A lock for reading cannot be turned into one for writing: the writer waits for all readers, itself included.");
    finding.fixes.push_back(
        {"Unlock first, lock for writing then, and look again at what was read: it may have changed in between."});
    finding.fixes.push_back({"Lock for writing from the beginning where a write may follow."});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
