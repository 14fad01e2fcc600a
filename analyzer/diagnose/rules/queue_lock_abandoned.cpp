// Processes wait for a semaphore in shared memory, and every process that has mapped the semaphore is stuck. If the
// semaphore is a lock of Python's multiprocessing, each process counts how often it has acquired the lock. If no living
// process holds the lock, the process that took it has ended. This happens to multiprocessing.Queue when a worker is
// killed. Other semaphores do not show who took them or who should post them. For such a semaphore it is only possible
// that the process to blame has ended.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

using model::SemaphoreUse;

bool is_semaphore(const model::Wait& wait) {
  const bool is_named = wait.path.find("/sem.") != std::string::npos;
  return wait.kind == model::WaitKind::kFutex && wait.is_stuck && wait.is_shared &&
         wait.use == model::FutexUse::kUnknown && is_named;
}

// Returns the processes that have mapped the semaphore.
std::vector<model::ProcessId> find_mappers(const Evidence& evidence, const model::Process& about,
                                           const model::Wait& wait) {
  std::vector<model::ProcessId> mappers;
  std::unordered_set<model::ProcessId> seen;
  for (const model::Waker& waker : wait.wakers) {
    const auto ids = evidence.processes_with_pid(waker.pid);
    const auto id =
        std::ranges::find_if(ids, [&](model::ProcessId one) { return evidence.process(one).host == about.host; });
    if (id != ids.end() && seen.insert(*id).second) mappers.push_back(*id);
  }
  return mappers;
}

// Returns the idle workers of pools. The finding lost-task explains why they wait: one worker waits for the next task
// and holds the semaphore, and the other workers wait for the semaphore.
std::unordered_set<model::ProcessId> find_idle_workers(const std::vector<Finding>& findings) {
  std::unordered_set<model::ProcessId> idle;
  for (const Finding& finding : findings) {
    if (finding.rule == "lost-task") idle.insert(finding.processes.begin(), finding.processes.end());
  }
  return idle;
}

// True if the wait is that of an idle worker of a multiprocessing.Pool for its next task, and `other` is the process
// that made the pool. That process waits for the result of a task that no worker takes.
bool is_for_pool_of(const model::Process& worker, const model::Wait& wait, const model::Process& other) {
  const bool is_worker = std::ranges::any_of(wait.stack.frames, [](const model::Frame& frame) {
    return frame.python && frame.function == "worker" && frame.file.ends_with("/multiprocessing/pool.py");
  });
  return is_worker && other.pid == worker.ppid && is_proven_dead(other);
}

bool waits_for_semaphore(const model::Process& process, const std::string& path) {
  return std::ranges::any_of(process.waits,
                             [&](const model::Wait& wait) { return is_semaphore(wait) && wait.path == path; });
}

// Says what the process waits for: "waits for the end of process 12"; "" if it waits for this semaphore.
std::string describe_other_wait(const model::Process& process, const std::string& path) {
  if (process.waits.empty() || waits_for_semaphore(process, path)) return {};
  const model::Wait& wait = process.waits.front();
  if (wait.kind != model::WaitKind::kWaitChild) return "waits for something else";
  return wait.target_pid > 0 ? fmt::format("waits for the end of process {}", wait.target_pid)
                             : std::string("waits for the end of a child");
}

std::string explain(SemaphoreUse use) {
  if (use == SemaphoreUse::kLockWithoutHolder)
    return "The semaphore is a lock of multiprocessing. Each process counts its own acquisitions. By these counts, "
           "none of these processes holds the lock. So the process that took the lock has ended: it was killed, it "
           "crashed, or it did not release the lock.";
  if (use == SemaphoreUse::kCounts)
    return "The semaphore is not a lock: one process waits until another one posts it. Nothing records which process "
           "should have posted it. That may be one of these processes, or a process that has ended.";
  return "A semaphore does not record who took it, or who should post it. That may be one of these processes, or a "
         "process that has ended.";
}

void add_fixes(const model::Process& process, SemaphoreUse use, Finding& finding) {
  finding.fixes.push_back(
      {"Find out which process ended without posting: its exit status, the kernel's log (out of memory: dmesg)."});
  if (!words::is_python(process)) {
    finding.fixes.push_back(
        {"Use a robust mutex in shared memory instead (pthread_mutexattr_setrobust()): the next one that locks it "
         "gets EOWNERDEAD."});
    return;
  }
  if (use != SemaphoreUse::kLockWithoutHolder) {
    finding.fixes.push_back(
        {"In Python: give wait(), acquire() and get() a timeout. Event, Condition and Barrier of multiprocessing do "
         "not "
         "notice that a process has ended."});
  }
  finding.fixes.push_back(
      {"In Python: do not terminate() or kill() a process that may be using a multiprocessing.Queue; "
       "concurrent.futures.ProcessPoolExecutor notices a worker that died and raises BrokenProcessPool."});
}

}  // namespace

void queue_lock_abandoned(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  const std::unordered_set<model::ProcessId> idle = find_idle_workers(findings);
  std::set<std::pair<std::size_t, model::ProcessId>> listed;  // the processes that a finding lists
  std::map<std::string, std::size_t> known;                   // indexed by the path of the semaphore
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    if (!is_proven_dead(process)) continue;  // another finding explains why a victim hangs
    if (idle.contains(id)) continue;
    for (const model::Wait& wait : process.waits) {
      // If one of the processes holds the lock, that process is the cause. Then other rules report what that process
      // waits for.
      if (!is_semaphore(wait) || wait.semaphore_use == SemaphoreUse::kLockHeld) continue;
      const auto [at, is_new] = known.try_emplace(wait.path, findings.size());
      if (!is_new) {
        if (listed.emplace(at->second, id).second) findings[at->second].processes.push_back(id);
        continue;
      }
      const std::string name = words::shared_file_name(wait);
      const bool has_ended = wait.semaphore_use == SemaphoreUse::kLockWithoutHolder;
      Finding finding = Evidence::begin_finding("queue-lock-abandoned", id, wait);
      finding.harm = no_signal_can_wake(process) ? Certainty::kProven : Certainty::kLikely;
      finding.cause = has_ended ? Certainty::kLikely : Certainty::kPossible;
      finding.outcome = Outcome::kHang;
      if (has_way_out(process)) set_may_be_intended(finding);
      finding.culprit.kind = CulpritKind::kLock;
      finding.culprit.name = fmt::format("semaphore {}", name);
      finding.culprit.address = wait.object;
      finding.summary = fmt::format(
          "{} {} waiting for semaphore {}{}, which no process is left to post: {}", evidence.name(id), hangs(process),
          name, words::at(" at ", wait.stack),
          has_ended ? "the process that took it last has ended" : "possibly a process that should post it has ended");
      add_sentence(finding, fmt::format("Thread {} of {} waits for semaphore {}, which is in shared memory.", wait.tid,
                                        evidence.name(id), name));
      const std::vector<model::ProcessId> mappers = find_mappers(evidence, process, wait);
      add_sentence(
          finding,
          fmt::format("{} mapped the semaphore, and its name is removed. So no other process can open it. {}",
                      mappers.size() <= 1 ? "Only this process has" : fmt::format("{} processes have", mappers.size()),
                      mappers.size() <= 1 ? "It is stuck." : "All of these are stuck."));
      for (const model::ProcessId mapper : mappers) {
        const std::string other = describe_other_wait(model.processes[mapper], wait.path);
        if (other.empty()) continue;
        if (is_for_pool_of(process, wait, model.processes[mapper])) {
          finding.victims.push_back({model.processes[mapper].pid, "the result of a task"});
          continue;
        }
        add_sentence(finding, fmt::format("Process {} {}.", model.processes[mapper].pid, other));
        // This process has mapped the semaphore and waits for something else. Perhaps it should post the semaphore. So
        // it is not just a victim.
        if (!has_ended) finding.processes.push_back(mapper);
      }
      add_sentence(finding, explain(wait.semaphore_use));
      add_sentence(finding, evidence.describe_liveness(process));
      add_fixes(process, wait.semaphore_use, finding);
      for (const model::ProcessId one : finding.processes) listed.emplace(findings.size(), one);
      findings.push_back(std::move(finding));
    }
  }
}

}  // namespace forksight::rules
