#include "diagnose/advice.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "diagnose/evidence.hpp"

namespace forksight {
namespace {

struct Framework {
  std::string_view mark;  // in the file of a Python frame
  // what happens to the other processes and to the work once the worker is ended; "{}": the worker's parent
  std::string_view then;
  std::string_view remedy;  // how to start workers without the broken state
};

// The first framework that fits is taken. A framework stands before the one that it is built on.
constexpr std::array kFrameworks{
    Framework{
        "/torch/utils/data/",
        "the DataLoader in process {} then raises a RuntimeError, and the batches that are not delivered are lost.",
        "Give the DataLoader multiprocessing_context=\"forkserver\" or \"spawn\": its workers begin without the "
        "parent's threads and locks. The dataset must then be picklable. With num_workers=0 nothing is forked."},
    Framework{"/concurrent/futures/process.py",
              "the executor in process {} then raises BrokenProcessPool for all calls that have no result yet.",
              "Make the executor with ProcessPoolExecutor(mp_context=multiprocessing.get_context(\"forkserver\")), or "
              "\"spawn\": its workers begin without the parent's threads and locks."},
    Framework{"/gunicorn/arbiter.py",
              "gunicorn's master, process {}, then starts another worker. The requests that this one has are lost.",
              "If gunicorn runs with --preload, run it without: each worker then loads the application after the fork. "
              "With --preload, start threads and open connections in the server hook post_fork."},
    Framework{
        "/celery/concurrency/prefork.py",
        "Celery's pool in process {} then starts another worker. The task of this one fails with WorkerLostError, "
        "or is queued again if task_reject_on_worker_lost says so.",
        "Start threads and open connections in a handler of Celery's signal worker_process_init, which runs in "
        "the child. With `celery worker --pool=threads` nothing is forked."},
    Framework{"/multiprocessing/pool.py",
              "the Pool in process {0} then starts another worker, but the task of this one is lost. A caller that "
              "waits for its result without a time limit waits for ever: end process {0}, too.",
              "Make the pool with multiprocessing.get_context(\"forkserver\").Pool(), or \"spawn\": its workers begin "
              "without the parent's threads and locks."},
    Framework{"/multiprocessing/process.py",
              "join() in process {} then returns, and exitcode is -9. The work of this child is lost.",
              "Make the child with multiprocessing.get_context(\"forkserver\").Process(), or \"spawn\": it begins "
              "without the parent's threads and locks."},
};

// Rules about state that a child meets only if it begins as a copy of its parent.
bool is_of_copied_state(std::string_view rule) {
  static constexpr std::array<std::string_view, 7> kOthers{
      "interrupted-static-init", "libc-lock-in-flight", "loader-lock-orphaned", "lost-blas-pool",
      "lost-openmp-pool",        "lost-thread-pool",    "python-lock-orphaned"};
  return rule.starts_with("orphaned-") || std::ranges::find(kOthers, rule) != kOthers.end();
}

bool shows(const model::Stack& stack, std::string_view mark) {
  return std::ranges::any_of(stack.frames, [&](const model::Frame& frame) {
    return frame.python && frame.file.find(mark) != std::string::npos;
  });
}

}  // namespace

void add_framework_advice(const model::Model& model, Finding& finding) {
  const model::Process& process = model.processes[finding.process];
  const bool is_forked = finding.fork && finding.fork->child == process.pid;
  if (!is_hang(finding) || !is_forked || !is_of_copied_state(finding.rule)) return;
  // The worker's own stack reaches into the parent's code that forked it. If that stack is cut, the stack of the fork
  // shows the framework.
  const auto framework = std::ranges::find_if(kFrameworks, [&](const Framework& each) {
    return shows(finding.stack, each.mark) || shows(finding.fork->stack, each.mark);
  });
  if (framework == kFrameworks.end()) return;
  finding.fixes.insert(finding.fixes.begin(), {std::string(framework->remedy)});
  const bool is_there = is_proven_dead(process) && !has_ended(process) && !process.is_core && !process.killed_by_run;
  if (!is_there || finding.processes.size() != 1) return;
  // The framework reacts in its own process, so that process must be alive and must still be the worker's parent.
  const auto parent = std::ranges::find(model.processes, finding.fork->pid, &model::Process::pid);
  if (finding.fork->pid != process.ppid || parent == model.processes.end() || has_ended(*parent)) return;
  const std::string then = fmt::format(fmt::runtime(framework->then), finding.fork->pid);
  finding.fixes.insert(finding.fixes.begin(),
                       {fmt::format("Now: end process {0} (kill -9 {0}): {1}", process.pid, then)});
}

}  // namespace forksight
