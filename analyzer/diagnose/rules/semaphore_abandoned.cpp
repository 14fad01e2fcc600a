// A thread waits for a System V semaphore of value 0, and the process that changed the semaphore last has ended. Most
// likely that process took the last unit and was killed. But a semaphore that serves as a signal looks the same if the
// process that took its last unit has ended. So the finding is a guess.
#include <fmt/core.h>

#include <map>
#include <utility>

#include "diagnose/evidence.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/suspects.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

// True if the process that changed the semaphore last took units from it and has ended. A process that gives a unit
// leaves a value above 0. The value is 0, so the last process took units.
bool was_taken_by_one_that_ended(const model::Wait& wait) {
  return wait.kind == model::WaitKind::kSemaphore && wait.semaphore && wait.semaphore->value == 0 &&
         wait.semaphore->operation < 0 && wait.semaphore->last_is_gone && !wait.has_timeout;
}

Finding describe_abandoned(const Evidence& evidence, model::ProcessId id, const model::Wait& wait) {
  const model::SemaphoreWait& semaphore = *wait.semaphore;
  const std::string name = evidence.name(id);
  Finding finding = Evidence::begin_finding("semaphore-abandoned", id, wait);
  finding.harm = Certainty::kPossible;
  finding.cause = Certainty::kPossible;
  finding.outcome = Outcome::kMayHang;
  finding.culprit.kind = CulpritKind::kLock;
  finding.culprit.name = fmt::format("semaphore {} of System V set {}", semaphore.number, semaphore.set);
  finding.culprit.holder.emplace();
  finding.culprit.holder->pid = semaphore.last_pid;
  finding.culprit.holder->tid = semaphore.last_pid;
  finding.summary = fmt::format("{} waits for {}{}, which is 0: process {} changed it last, and has ended", name,
                                finding.culprit.name, words::at(" at ", wait.stack), semaphore.last_pid);
  const std::string since = wait.for_ms ? fmt::format(" for {}", words::duration(*wait.for_ms)) : std::string();
  add_sentence(finding,
               fmt::format("Thread {} of {} has waited{} in semop(){} until {} is at least {}.", wait.tid, name, since,
                           words::at(" at ", wait.stack), finding.culprit.name, -semaphore.operation));
  add_sentence(finding, fmt::format("Process {} changed it last, and does not exist any more. Since the semaphore is "
                                    "0, that process most likely took the last unit and did not give it back.",
                                    semaphore.last_pid));
  add_sentence(finding,
               "Such semaphores outlive the processes that use them: the kernel gives back only what was taken with "
               "SEM_UNDO.");
  add_sentence(finding, "This is not certain: any process that knows the number of the set may still give a unit.");
  finding.fixes.push_back(
      {"Take the semaphore with SEM_UNDO: the kernel gives it back when the process ends, however the process ends."});
  finding.fixes.push_back(
      {fmt::format("To go on now: look with `ipcs -s -i {}`; end those that use the set, and remove it "
                   "with `ipcrm -s {}`.",
                   semaphore.set, semaphore.set)});
  return finding;
}

}  // namespace

void semaphore_abandoned(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  suspects::Explained explained;
  std::map<std::pair<std::int32_t, std::uint32_t>, std::size_t> known;  // indexed by semaphore set and number
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    if (explained.has(evidence, id, findings)) continue;
    for (const model::Wait& wait : model.processes[id].waits) {
      if (!was_taken_by_one_that_ended(wait)) continue;
      const auto [at, is_new] = known.try_emplace({wait.semaphore->set, wait.semaphore->number}, findings.size());
      if (is_new) {
        findings.push_back(describe_abandoned(evidence, id, wait));
      } else if (findings[at->second].processes.back() != id) {
        findings[at->second].processes.push_back(id);
      }
    }
  }
}

}  // namespace forksight::rules
