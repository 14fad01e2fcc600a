// A worker of a pool of processes was killed while it had a task. The pool starts another worker, but nobody repeats
// the task. The caller of the task waits for the result for ever, while all workers wait for tasks. The rule knows only
// Python's multiprocessing.Pool. It recognises the pool by the Python functions on the stacks of the processes.
#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/python.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

constexpr std::string_view kPool = "/multiprocessing/pool.py";
constexpr std::string_view kQueues = "/multiprocessing/queues.py";

bool is_in(const model::Stack& stack, std::string_view file, std::initializer_list<std::string_view> functions) {
  return std::ranges::any_of(stack.frames, [&](const model::Frame& frame) {
    return frame.python && frame.file.ends_with(file) &&
           std::ranges::find(functions, frame.function) != functions.end();
  });
}

bool waits_for_result(const model::Wait& wait) {
  return wait.is_stuck && is_in(wait.stack, kPool, {"wait", "next"}) && is_in(wait.stack, kPool, {"get", "next"});
}

bool is_worker(const model::Process& process) {
  return std::ranges::any_of(process.waits,
                             [](const model::Wait& wait) { return is_in(wait.stack, kPool, {"worker"}); });
}

bool is_at(const model::Frame& frame, std::string_view file, std::string_view function) {
  return frame.python && frame.file.ends_with(file) && frame.function == function;
}

// True if the function of the worker itself waits for the next task. If a function of the program is in between, the
// worker has a task, and the task waits for a queue of its own.
bool takes_task(const model::Wait& wait) {
  const model::Frame* inner = nullptr;
  for (const model::Frame& frame : wait.stack.frames) {
    if (!frame.python) continue;
    if (is_at(frame, kPool, "worker")) return inner != nullptr && is_at(*inner, kQueues, "get");
    inner = &frame;
  }
  return false;
}

bool waits_for_task(const model::Process& process) {
  return std::ranges::any_of(process.waits, [](const model::Wait& wait) { return wait.is_stuck && takes_task(wait); });
}

bool waits_for_semaphore(const model::Process& process) {
  return std::ranges::any_of(process.waits, [](const model::Wait& wait) {
    return wait.is_stuck && takes_task(wait) && wait.kind == model::WaitKind::kFutex && wait.is_shared &&
           wait.path.find("/sem.") != std::string::npos && wait.semaphore_use != model::SemaphoreUse::kLockHeld;
  });
}

// `has_lost_worker`: a child of the process has ended. This child may have been the worker that had the task.
Finding describe(const Evidence& evidence, model::ProcessId id, const model::Wait& wait,
                 const std::vector<model::ProcessId>& workers, bool has_lost_worker) {
  const model::Process& process = evidence.process(id);
  Finding finding = Evidence::begin_finding("lost-task", id, wait);
  finding.harm = no_signal_can_wake(process) ? Certainty::kProven : Certainty::kLikely;
  finding.cause = has_lost_worker ? Certainty::kLikely : Certainty::kPossible;
  finding.outcome = Outcome::kHang;
  if (has_way_out(process)) set_may_be_intended(finding);
  finding.processes.insert(finding.processes.end(), workers.begin(), workers.end());
  finding.culprit.kind = CulpritKind::kProcess;
  finding.culprit.name = "a worker that ended before its task was done";
  finding.summary = fmt::format(
      "{} {}{} waiting for the result of a task of a multiprocessing.Pool, and {}: {}the worker that had the task has "
      "ended",
      evidence.name(id), hangs(process), words::at(" at ", wait.stack),
      workers.size() == 1 ? "its worker waits for tasks"
                          : fmt::format("all its {} workers wait for tasks", workers.size()),
      has_lost_worker ? "" : "perhaps ");
  add_sentence(finding, fmt::format("Thread {} of {} waits{} for the result of a task.", wait.tid, evidence.name(id),
                                    words::at(" at ", wait.stack)));
  for (const model::ProcessId worker : workers) {
    add_sentence(finding,
                 fmt::format("Process {}, a worker of the pool, waits for a task.", evidence.process(worker).pid));
  }
  add_sentence(finding, evidence.describe_liveness(process));
  add_sentence(finding,
               "A multiprocessing.Pool starts another worker in the place of one that has ended, and does not notice "
               "that the ended worker had a task.");
  if (!has_lost_worker) {
    add_sentence(finding,
                 "But forksight did not see that a child of this process has ended. Perhaps a thread of the pool that "
                 "passes on tasks or results waits itself, or has ended: for example in the iterator that imap() got.");
  }
  finding.fixes.push_back(
      {"Use concurrent.futures.ProcessPoolExecutor: it raises BrokenProcessPool when a worker dies."});
  finding.fixes.push_back(
      {"Find out why the worker ended: its exit status, the kernel's log (out of memory: dmesg), os._exit() in a "
       "task."});
  finding.fixes.push_back({"Wait with a time limit: AsyncResult.get(timeout)."});
  return finding;
}

}  // namespace

void lost_task(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  std::map<std::pair<std::string_view, std::int32_t>, std::vector<model::ProcessId>> workers_of;  // by host and pid
  std::set<std::pair<std::string_view, std::int32_t>> have_lost_child;
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    if (is_worker(process)) workers_of[{process.host, process.ppid}].push_back(id);
    if (process.exit_status && !process.killed_by_run) have_lost_child.insert({process.host, process.ppid});
    if (process.has_reaped || !process.zombies.empty()) have_lost_child.insert({process.host, process.pid});
  }
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    const auto wait = std::ranges::find_if(process.waits, waits_for_result);
    if (!is_proven_dead(process) || wait == process.waits.end()) continue;
    const std::vector<model::ProcessId>& workers = workers_of[{process.host, process.pid}];
    const bool are_idle =
        std::ranges::all_of(workers, [&](model::ProcessId other) { return waits_for_task(model.processes[other]); });
    // One idle worker holds the lock of the queue and reads from the pipe, and the others wait for the lock. If none of
    // them reads, an ended worker has taken the lock with it. The rule queue-lock-abandoned reports this.
    const bool is_lock_lost = std::ranges::all_of(
        workers, [&](model::ProcessId other) { return waits_for_semaphore(model.processes[other]); });
    const bool has_lost_worker = have_lost_child.contains({process.host, process.pid});
    if (!workers.empty() && are_idle && !is_lock_lost)
      findings.push_back(describe(evidence, id, *wait, workers, has_lost_worker));
  }
}

}  // namespace forksight::rules
