#include "diagnose/advice.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/evidence.hpp"
#include "diagnose/words.hpp"

namespace forksight {
namespace {

// A context is a framework or language together with the advice for it. A mark says which part of a stack shows the
// context.
enum class Mark {
  kPythonFile,  // the text is in the file of a Python frame
  kFunction,    // a native function begins with the text
  kModule,      // the text is in the file name of a native module
};

// What a finding is about. Each remedy is for one kind of problem.
enum class Problem {
  kCopiedState,  // a forked child hangs on state that its fork broke
  kLostTask,     // a forked child that does not run Python waits for threads that its fork did not copy
  kLostTeam,     // a forked child that runs Python waits for an OpenMP pool. With one thread it needs no pool.
  kFullPipe,     // a child writes to a pipe, and its parent waits for the child to end
};

// A test of a remedy. The case of `rule` expects a finding of `rule`. `by` is the variant of this case that follows the
// remedy, and about which forksight must report nothing.
struct Test {
  std::string_view rule;
  std::string_view by;
};

struct Context {
  Problem problem;
  Mark mark;
  std::string_view text;
  // What the parent does, and which work is lost, when the user ends the worker. "{}" stands for the pid of the parent.
  std::string_view then;
  std::string_view remedy;  // how to start workers without the broken state
  std::array<Test, 2> tests = {};
  // True if the framework does not start its workers by multiprocessing. Then general advice about multiprocessing is
  // left out.
  bool has_own_workers = false;
};

// How general advice about the start method of multiprocessing begins.
constexpr std::array<std::string_view, 2> kOfMultiprocessing{
    "Start workers with multiprocessing.set_start_method(\"forkserver\") or \"spawn\": ",
    "In Python, start workers with multiprocessing.set_start_method("};

// The code uses the first context of this table that a stack shows. So a framework comes before the framework that it
// is built on. The test suite.tested_fixes reads `tests`.
constexpr std::array kContexts{
    Context{Problem::kCopiedState, Mark::kPythonFile, "/torch/utils/data/",
            "the DataLoader in process {} then raises a RuntimeError, and the batches that are not delivered are lost.",
            "Give the DataLoader multiprocessing_context=\"forkserver\" or \"spawn\": its workers begin without the "
            "parent's threads and locks. The dataset must then be picklable. With num_workers=0 nothing is forked."},
    Context{Problem::kCopiedState, Mark::kPythonFile, "/concurrent/futures/process.py",
            "the executor in process {} then raises BrokenProcessPool for all calls that have no result yet.",
            "Make the executor with ProcessPoolExecutor(mp_context=multiprocessing.get_context(\"forkserver\")), or "
            "\"spawn\": its workers begin without the parent's threads and locks.",
            {Test{"python-lock-orphaned", "python.process_executor.repaired"}}},
    Context{Problem::kCopiedState, Mark::kPythonFile, "/gunicorn/arbiter.py",
            "gunicorn's master, process {}, then starts another worker. The requests that this one has are lost.",
            "If gunicorn runs with --preload, run it without: each worker then loads the application after the fork. "
            "With --preload, start threads and open connections in the server hook post_fork.",
            {},
            true},
    Context{Problem::kCopiedState, Mark::kFunction, "uwsgi_",
            "uWSGI's master, process {}, then starts another worker. The requests that this one has are lost.",
            "Run uWSGI with lazy-apps = true (--lazy-apps): each worker then loads the application after the fork. Or "
            "start threads and open connections in a function with the decorator @postfork of uwsgidecorators.",
            {},
            true},
    Context{
        Problem::kCopiedState, Mark::kPythonFile, "/celery/concurrency/prefork.py",
        "Celery's pool in process {} then starts another worker. The task of this one fails with WorkerLostError, "
        "or is queued again if task_reject_on_worker_lost says so.",
        "Start threads and open connections in a handler of Celery's signal worker_process_init, which runs in "
        "the child. With `celery worker --pool=threads` nothing is forked.",
        {},
        true},
    Context{Problem::kCopiedState, Mark::kPythonFile, "/multiprocessing/pool.py",
            "the Pool in process {0} then starts another worker, but the task of this one is lost. A caller that waits for its "
            "result without a time limit waits for ever: end process {0}, too.",
            "Make the pool with multiprocessing.get_context(\"forkserver\").Pool(), or \"spawn\": its workers begin "
            "without the parent's threads and locks.",
            {Test{"python-lock-orphaned", "python.pool_worker.forkserver"},
             Test{"python-lock-orphaned", "python.pool_worker.spawn"}}},
    Context{Problem::kCopiedState, Mark::kPythonFile, "/multiprocessing/process.py",
            "join() in process {} then returns, and exitcode is -9. The work of this child is lost.",
            "Make the child with multiprocessing.get_context(\"forkserver\").Process(), or \"spawn\": it begins "
            "without the parent's threads and locks.",
            {Test{"python-lock-orphaned", "python.start_methods.forkserver"},
             Test{"python-lock-orphaned", "python.start_methods.spawn"}}},
    Context{Problem::kCopiedState, Mark::kPythonFile, "/asyncio/base_events.py",
            "a task in process {} that waits for the end of this child then goes on. The work of the child is lost.",
            "Start the child by asyncio.create_subprocess_exec(): it is a new program, without the locks and threads of "
            "this one.",
            {Test{"python-lock-orphaned", "python.fork_in_loop.repaired"}},
            true},
    Context{Problem::kCopiedState, Mark::kModule, "libR.so",
            "parallel::mclapply() in process {} then returns with a warning, and without the values of this worker.",
            "In R, use parallel::makeCluster() and parLapply() instead of mclapply(): the workers are new processes. Or let "
            "libraries use one thread before the fork: RhpcBLASctl::blas_set_num_threads(1), "
            "RhpcBLASctl::omp_set_num_threads(1), data.table::setDTthreads(1)."},
    Context{Problem::kCopiedState, Mark::kModule, "libruby",
            "Process.wait in process {} then returns, or Puma's cluster mode starts another worker. The work of this "
            "child is lost.",
            "In Ruby, start a new program by Process.spawn instead of fork. In Puma, set preload_app! to false, or create "
            "threads and connections in before_worker_boot (on_worker_boot before version 7)."},
    Context{Problem::kLostTask, Mark::kFunction, "std::__atomic_futex_unsigned_base::",
            "waitpid() in process {} then returns. The work of this child is lost.",
            "In C++, make the pool, or call std::async, in the child: std::thread and std::async run only in the process "
            "that starts them, and a future of the parent is never set in the child.",
            {Test{"lost-thread-pool", "std_thread_pool.repaired"}, Test{"lost-wakeup", "lost_async.repaired"}}},
    Context{Problem::kLostTeam, Mark::kModule, "libtorch",
            "",
            "Let PyTorch use one thread in the child: call torch.set_num_threads(1) there first. In a Pool: "
            "initializer=torch.set_num_threads, initargs=(1,).",
            {Test{"lost-openmp-pool", "python.torch_worker.repaired"}}},
    Context{Problem::kFullPipe, Mark::kPythonFile, "/multiprocessing/queues.py",
            "join() in process {} then returns, and exitcode is -9. What the child has not written yet is lost.",
            "Take all items out of the multiprocessing.Queue (get()) before join(): a child ends only after the items that "
            "it has put into the queue are read."},
    Context{Problem::kFullPipe, Mark::kPythonFile, "/subprocess.py",
            "Popen.wait() in process {} then returns -9. What the child has not written yet is lost.",
            "Call communicate() instead of Popen.wait(), or subprocess.run(capture_output=True): they read the "
            "output until the child has ended.",
            {Test{"pipe-deadlock", "python.subprocess_wait.repaired"}}},
};

bool is_of_lost_task(const model::Process& process, std::string_view rule) {
  return (rule == "lost-thread-pool" || rule == "lost-wakeup") && !words::is_python(process);
}

// True if the rule is about state that a child has only because it begins as a copy of its parent.
bool is_of_copied_state(std::string_view rule) {
  static constexpr std::array<std::string_view, 8> kOthers{
      "interrupted-static-init", "libc-lock-in-flight", "loader-lock-orphaned", "lost-blas-pool",
      "lost-openmp-pool",        "lost-thread-pool",    "lost-wakeup",          "python-lock-orphaned"};
  return rule.starts_with("orphaned-") || std::ranges::find(kOthers, rule) != kOthers.end();
}

bool shows(const model::Stack& stack, const Context& context) {
  return std::ranges::any_of(stack.frames, [&](const model::Frame& frame) {
    switch (context.mark) {
      case Mark::kPythonFile: return frame.python && frame.file.find(context.text) != std::string::npos;
      case Mark::kFunction: return !frame.python && frame.function.starts_with(context.text);
      case Mark::kModule: return !frame.python && words::base_name(frame.module).find(context.text) != std::string::npos;
    }
    return false;
  });
}

// Returns the stacks that may show the context. For kFullPipe these are the stacks of all waiting threads of the
// finding's processes. For other kinds of problem these are the stack of the hanging thread and the stack of the fork.
std::vector<const model::Stack*> find_stacks(const model::Model& model, const Finding& finding, Problem problem) {
  std::vector<const model::Stack*> stacks;
  if (problem != Problem::kFullPipe) {
    // The worker's own stack contains the parent's frames that led to the fork. If the worker's stack is cut off, the
    // stack of the fork still shows these frames.
    stacks.push_back(&finding.stack);
    stacks.push_back(&finding.fork->stack);
  } else {
    for (const model::ProcessId id : finding.processes) {
      for (const model::Wait& wait : model.processes[id].waits) stacks.push_back(&wait.stack);
    }
  }
  return stacks;
}

std::optional<Problem> find_problem(const model::Model& model, const Finding& finding) {
  if (!is_hang(finding)) return std::nullopt;
  const model::Process& process = model.processes[finding.process];
  const bool is_of_child = finding.fork && finding.fork->child == process.pid;
  if (is_of_child && is_of_copied_state(finding.rule)) return Problem::kCopiedState;
  const bool is_of_two = finding.processes.size() == 2;
  if (finding.rule != "pipe-deadlock" || !is_of_two) return std::nullopt;
  const model::Process& parent = model.processes[finding.processes[1]];
  const bool waits_for_end = std::ranges::any_of(parent.waits, [&](const model::Wait& wait) {
    return wait.kind == model::WaitKind::kWaitChild &&
           std::ranges::any_of(wait.wakers, [&](const model::Waker& waker) { return waker.pid == process.pid; });
  });
  return process.ppid == parent.pid && waits_for_end ? std::optional(Problem::kFullPipe) : std::nullopt;
}

bool is_tested(const Context& context, std::string_view rule) {
  return std::ranges::any_of(context.tests, [&](const Test& test) { return test.rule == rule; });
}

const Context* find_context(const model::Model& model, const Finding& finding, Problem problem) {
  const std::vector<const model::Stack*> stacks = find_stacks(model, finding, problem);
  const bool is_lost_task =
      problem == Problem::kCopiedState && is_of_lost_task(model.processes[finding.process], finding.rule);
  const auto context = std::ranges::find_if(kContexts, [&](const Context& each) {
    const bool is_about_it = each.problem == problem || (is_lost_task && each.problem == Problem::kLostTask);
    return is_about_it && std::ranges::any_of(stacks, [&](const model::Stack* stack) { return shows(*stack, each); });
  });
  return context == kContexts.end() ? nullptr : &*context;
}

// True if the process still exists, is proven never to go on, and may be ended by the user.
bool can_be_ended(const model::Process& process) {
  return is_proven_dead(process) && !has_ended(process) && !process.is_core && !process.killed_by_run;
}

// Returns the pids of the finding's processes; none if one of the processes cannot be ended.
std::vector<std::int32_t> find_pids_to_end(const model::Model& model, const Finding& finding) {
  std::vector<std::int32_t> pids;
  for (const model::ProcessId id : finding.processes) {
    if (!can_be_ended(model.processes[id])) return {};
    pids.push_back(model.processes[id].pid);
  }
  return pids;
}

// Returns "Now: end process 17 (kill -9 17)". If the finding's hang is not certain, the user is asked to judge first.
std::string describe_processes_to_end(const std::vector<std::int32_t>& pids, const Finding& finding) {
  const std::string_view first =
      finding.outcome == Outcome::kHang ? "Now: " : "Now: if you know that this wait lasts for ever, ";
  if (pids.size() == 1) return fmt::format("{0}end process {1} (kill -9 {1})", first, pids.front());
  return fmt::format("{}end processes {} (kill -9 {})", first, fmt::join(pids, ", "), fmt::join(pids, " "));
}

// True if each of the finding's processes is a child of `parent`.
bool have_parent(const model::Model& model, const Finding& finding, std::int32_t parent) {
  return std::ranges::all_of(finding.processes,
                             [&](model::ProcessId id) { return model.processes[id].ppid == parent; });
}

void put_first(std::string text, bool is_tested, Finding& finding) {
  finding.fixes.insert(finding.fixes.begin(), {std::move(text), is_tested});
}

}  // namespace

Advisor::Advisor(const model::Model& model) : model_(model) {
  for (const model::Process& process : model.processes) {
    by_pid_.try_emplace(process.pid, &process);
    if (process.waits_for && process.waits_via == "wait4" && !has_ended(process))
      waiter_for_end_of_.try_emplace(*process.waits_for, &process);
  }
}

// Returns the process that started the hanging process. The framework's code in that process reacts when the user ends
// the hanging process. Null if the starter has ended, or is no longer the parent.
const model::Process* Advisor::find_starter(const Finding& finding, bool is_started_by_parent) const {
  const model::Process& process = model_.processes[finding.process];
  const std::int32_t starter = is_started_by_parent ? process.ppid : finding.fork->pid;
  const auto parent = by_pid_.find(starter);
  const bool is_there = starter == process.ppid && parent != by_pid_.end() && !has_ended(*parent->second);
  return is_there ? parent->second : nullptr;
}

// Returns a sentence about a process that waits in wait4() for the end of the finding's process; "" if no process does.
// The waiting process goes on when the user ends the finding's process.
std::string Advisor::describe_processes_that_continue(const Finding& finding) const {
  const auto waiter = waiter_for_end_of_.find(finding.process);
  if (waiter == waiter_for_end_of_.end()) return {};
  return fmt::format(" Process {} waits for process {} to end, and then goes on.", waiter->second->pid,
                     model_.processes[finding.process].pid);
}

void Advisor::add_advice(Finding& finding) const {
  const model::Model& model = model_;
  const std::optional<Problem> problem = find_problem(model, finding);
  const bool is_of_lost_team =
      problem == Problem::kCopiedState && finding.rule == "lost-openmp-pool" &&
      words::is_python(model.processes[finding.process]);
  if (const Context* const library = is_of_lost_team ? find_context(model, finding, Problem::kLostTeam) : nullptr)
    put_first(std::string(library->remedy), is_tested(*library, finding.rule), finding);
  const Context* const context = problem ? find_context(model, finding, *problem) : nullptr;
  if (context != nullptr) {
    if (context->has_own_workers) {
      std::erase_if(finding.fixes, [](const Fix& fix) {
        return std::ranges::any_of(kOfMultiprocessing, [&](std::string_view one) { return fix.text.starts_with(one); });
      });
    }
    put_first(std::string(context->remedy), is_tested(*context, finding.rule), finding);
  }

  const model::Process& process = model.processes[finding.process];
  const bool is_one = finding.processes.size() == 1;
  const model::Process* const starter =
      context != nullptr && can_be_ended(process) ? find_starter(finding, *problem == Problem::kFullPipe) : nullptr;
  if (starter != nullptr && (is_one || *problem == Problem::kFullPipe)) {
    put_first(fmt::format("Now: end process {0} (kill -9 {0}): {1}", process.pid,
                          fmt::format(fmt::runtime(context->then), starter->pid)),
              false, finding);
    return;
  }
  const bool is_certain_enough = finding.outcome == Outcome::kHang ||
                                 (finding.outcome == Outcome::kMayHang && finding.harm == Certainty::kLikely);
  const std::vector<std::int32_t> pids = is_certain_enough ? find_pids_to_end(model, finding) : std::vector<std::int32_t>();
  if (pids.empty()) return;
  const bool hangs_by_itself =
      is_one || problem == Problem::kCopiedState || finding.processes.size() == finding.count;
  if (!hangs_by_itself) {
    // The processes wait for each other. It may be enough to end one of them.
    if (finding.count == 1 && finding.outcome == Outcome::kHang) {
      put_first(fmt::format("Now: end one of the processes {} (kill -9 PID). Its work is lost. The others may then go on.",
                            fmt::join(pids, ", ")),
                false, finding);
    }
    return;
  }
  std::string text = describe_processes_to_end(pids, finding);
  if (is_one) {
    text += ". Its work is lost." + describe_processes_that_continue(finding);
  } else if (starter != nullptr && have_parent(model, finding, starter->pid)) {
    text += ". For each of them: " + fmt::format(fmt::runtime(context->then), starter->pid);
  } else {
    text += ". Their work is lost.";
  }
  put_first(std::move(text), false, finding);
}

}  // namespace forksight
