// Processes that all wait for one semaphore in shared memory, which nobody else has: whoever took it last is gone. So
// it goes with multiprocessing.Queue when a worker is killed. A semaphore does not tell who took it: never more than
// likely.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

bool is_semaphore(const model::Wait& wait) {
  const bool is_named = wait.path.find("/sem.") != std::string::npos;
  return wait.kind == model::WaitKind::kFutex && wait.is_stuck && wait.is_shared &&
         wait.use == model::FutexUse::kUnknown && is_named;
}

}  // namespace

void queue_lock_abandoned(const Evidence& evidence, std::vector<Finding>& findings) {
  const model::Model& model = evidence.model();
  std::map<std::string, std::size_t> known;  // by path
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    if (!is_proven_dead(process)) continue;  // of a victim another finding tells the cause
    for (const model::Wait& wait : process.waits) {
      if (!is_semaphore(wait)) continue;
      const auto [at, is_new] = known.try_emplace(wait.path, findings.size());
      if (!is_new) {
        findings[at->second].processes.push_back(id);
        continue;
      }
      const std::string name(words::base_name(wait.path.substr(0, wait.path.find(" (deleted)"))));
      Finding finding = Evidence::begin_finding("queue-lock-abandoned", id, wait);
      finding.harm = Certainty::kLikely;
      finding.cause = Certainty::kLikely;
      finding.outcome = Outcome::kHang;
      if (has_way_out(process)) set_may_be_meant(finding);
      finding.culprit.kind = CulpritKind::kLock;
      finding.culprit.name = fmt::format("semaphore {}", name);
      finding.culprit.address = wait.object;
      finding.summary = fmt::format(
          "{} {} waiting for semaphore {}, and nobody who has it will ever post it: who took it last is gone",
          evidence.name(id), hangs(process), name);
      add_sentence(finding, fmt::format("Thread {} of {} waits for semaphore {}, which is in shared memory.", wait.tid,
                                        evidence.name(id), name));
      add_sentence(
          finding,
          fmt::format("{} it mapped, and its name is removed: nobody else can come to it. All of these are stuck.",
                      wait.wakers.size() == 1 ? "Only this process has"
                                              : fmt::format("{} processes have", wait.wakers.size())));
      add_sentence(finding,
                   "A semaphore does not tell who took it: most likely a process that was killed, or crashed, before "
                   "it posted.");
      add_sentence(finding, describe_liveness(process));
      finding.fixes.push_back(
          {"Find out which process ended without posting: its exit status, the kernel's log (out of memory: dmesg)."});
      if (words::is_python(process)) {
        finding.fixes.push_back(
            {"In Python: do not terminate() or kill() a process that may be using a multiprocessing.Queue; "
             "concurrent.futures.ProcessPoolExecutor notices a worker that died and raises BrokenProcessPool."});
      } else {
        finding.fixes.push_back(
            {"Use a robust mutex in shared memory instead (pthread_mutexattr_setrobust()): the next one is told."});
      }
      findings.push_back(std::move(finding));
    }
  }
}

}  // namespace forksight::rules
