// Processes wait for a semaphore in shared memory, and every process that has the semaphore is one of them. So the
// process that took it last has ended. This happens to multiprocessing.Queue when a worker is killed. A semaphore does
// not record who took it, so this is never more than likely. If a process has it mapped and waits for something else,
// that process may have taken it: then it is only possible.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <vector>

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

// A thread of the process waits for this semaphore, or for the end of a child. Then it is not the process that should
// post the semaphore.
bool waits_for_it(const model::Process& process, const std::string& path) {
  return !process.waits.empty() && std::ranges::any_of(process.waits, [&](const model::Wait& wait) {
    return (is_semaphore(wait) && wait.path == path) || wait.kind == model::WaitKind::kWaitChild;
  });
}

// Processes that have the semaphore and wait for something else.
std::vector<std::int32_t> find_suspects(const model::Model& model, const model::Process& about,
                                        const model::Wait& wait) {
  std::vector<std::int32_t> suspects;
  for (const model::Waker& waker : wait.wakers) {
    const auto process = std::ranges::find_if(
        model.processes, [&](const model::Process& one) { return one.pid == waker.pid && one.host == about.host; });
    const bool is_free = process != model.processes.end() && waits_for_it(*process, wait.path);
    if (!is_free && std::ranges::find(suspects, waker.pid) == suspects.end()) suspects.push_back(waker.pid);
  }
  return suspects;
}

std::string name_suspects(const std::vector<std::int32_t>& suspects) {
  std::string names;
  for (const std::int32_t pid : suspects) names += fmt::format("{}process {}", names.empty() ? "" : ", ", pid);
  return names;
}

}  // namespace

void queue_lock_abandoned(const Evidence& evidence, std::vector<Finding>& findings) {
  const model::Model& model = evidence.model();
  std::map<std::string, std::size_t> known;  // by path
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    if (!is_proven_dead(process)) continue;  // another finding tells the cause of a victim's hang
    // Idle workers of a pool wait for this semaphore while one of them waits for the next task.
    const auto is_idle = [&](const Finding& finding) {
      return finding.rule == "lost-task" && std::ranges::find(finding.processes, id) != finding.processes.end();
    };
    if (std::ranges::any_of(findings, is_idle)) continue;
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
      const std::vector<std::int32_t> suspects = find_suspects(model, process, wait);
      finding.cause = suspects.empty() ? Certainty::kLikely : Certainty::kPossible;
      finding.outcome = Outcome::kHang;
      if (has_way_out(process)) set_may_be_intended(finding);
      finding.culprit.kind = CulpritKind::kLock;
      finding.culprit.name = fmt::format("semaphore {}", name);
      finding.culprit.address = wait.object;
      finding.summary = fmt::format(
          "{} {} waiting for semaphore {}{}, and nobody who has it will ever post it: {}", evidence.name(id),
          hangs(process), name, words::at(" at ", wait.stack),
          suspects.empty()
              ? "the process that took it last has ended"
              : fmt::format("the process that took it last has ended, or is {}, which waits for something else",
                            name_suspects(suspects)));
      add_sentence(finding, fmt::format("Thread {} of {} waits for semaphore {}, which is in shared memory.", wait.tid,
                                        evidence.name(id), name));
      add_sentence(
          finding,
          fmt::format("{} it mapped, and its name is removed: no other process can open it. All of these are stuck.",
                      wait.wakers.size() == 1 ? "Only this process has"
                                              : fmt::format("{} processes have", wait.wakers.size())));
      add_sentence(finding, suspects.empty() ? "A semaphore does not record who took it: most likely a process that "
                                               "was killed, or crashed, before it posted."
                                             : fmt::format("A semaphore does not record who took it: {}, or a process "
                                                           "that was killed, or crashed, before it posted.",
                                                           name_suspects(suspects)));
      add_sentence(finding, describe_liveness(process));
      finding.fixes.push_back(
          {"Find out which process ended without posting: its exit status, the kernel's log (out of memory: dmesg)."});
      if (words::is_python(process)) {
        finding.fixes.push_back(
            {"In Python: do not terminate() or kill() a process that may be using a multiprocessing.Queue; "
             "concurrent.futures.ProcessPoolExecutor notices a worker that died and raises BrokenProcessPool."});
      } else {
        finding.fixes.push_back(
            {"Use a robust mutex in shared memory instead (pthread_mutexattr_setrobust()): the next one that locks it "
             "gets EOWNERDEAD."});
      }
      findings.push_back(std::move(finding));
    }
  }
}

}  // namespace forksight::rules
