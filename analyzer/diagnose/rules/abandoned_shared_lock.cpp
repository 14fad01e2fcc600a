// The owner of a lock in shared memory no longer exists: it was killed, or ended, between lock and unlock. Every
// process that wants the lock waits for ever. A robust mutex would have told the first of these processes that the
// owner is dead.
#include <fmt/core.h>

#include <map>

#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void abandoned_shared_lock(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  std::map<std::pair<std::string, std::int32_t>, std::size_t> known;  // indexed by file and owner of the lock
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    for (const model::Wait& wait : model.processes[id].waits) {
      const bool is_lock = wait.kind == model::WaitKind::kFutex && wait.use != model::FutexUse::kUnknown &&
                           wait.use != model::FutexUse::kJoin;
      if (!wait.is_stuck || !is_lock || !wait.is_shared || !wait.owner_is_gone) continue;
      const auto [at, is_new] = known.try_emplace({wait.path, wait.owner}, findings.size());
      if (!is_new) {
        findings[at->second].processes.push_back(id);
        continue;
      }
      const model::Process& process = model.processes[id];
      Finding finding = Evidence::begin_finding("abandoned-shared-lock", id, wait);
      finding.harm = Certainty::kProven;
      finding.cause = Certainty::kProven;
      finding.outcome = Outcome::kHang;
      finding.culprit = cycles::culprit_lock(wait);
      finding.summary =
          fmt::format("{} {} locking {}{}: thread {} took it and does not exist any more", evidence.name(id),
                      hangs(process), cycles::object(wait), words::at(" at ", wait.stack), wait.owner);
      add_sentence(finding,
                   fmt::format("Thread {} of {} waits for {}.", wait.tid, evidence.name(id), cycles::object(wait)));
      add_sentence(finding, fmt::format("It is locked, and its memory names task {} as the owner: no such task exists.",
                                        wait.owner));
      add_sentence(finding, evidence.describe_liveness(process));
      finding.fixes.push_back(
          {"Make the mutex robust (pthread_mutexattr_setrobust()). The next thread that locks the mutex gets "
           "EOWNERDEAD, "
           "can repair the data, and goes on (pthread_mutex_consistent())."});
      finding.fixes.push_back(
          {"Do not end processes by SIGKILL while they may hold the mutex. To go on now, end all processes that share "
           "the "
           "mutex, and create a new mutex."});
      findings.push_back(std::move(finding));
    }
  }
}

}  // namespace forksight::rules
