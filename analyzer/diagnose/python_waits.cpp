#include "diagnose/python_waits.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "diagnose/python.hpp"
#include "diagnose/words.hpp"

namespace forksight::python {

namespace {

constexpr std::string_view kFutures = "/concurrent/futures/_base.py";
constexpr std::string_view kExecutor = "/concurrent/futures/thread.py";
constexpr std::string_view kProcessExecutor = "/concurrent/futures/process.py";
constexpr std::string_view kLoop = "/asyncio/base_events.py";
constexpr std::string_view kQueues = "/multiprocessing/queues.py";
constexpr std::string_view kImport = "<frozen importlib._bootstrap>";
constexpr std::size_t kMostNamed = 4;

bool is_in(const model::Stack& stack, std::string_view file, std::initializer_list<std::string_view> functions) {
  return std::ranges::any_of(stack.frames, [&](const model::Frame& frame) {
    return frame.python && frame.file.ends_with(file) &&
           (functions.size() == 0 || std::ranges::find(functions, frame.function) != functions.end());
  });
}

bool runs_executor(const model::Stack& stack) { return is_in(stack, kExecutor, {"_worker"}); }
bool runs_loop(const model::Stack& stack) { return is_in(stack, kLoop, {"run_forever"}); }
bool runs_feeder(const model::Stack& stack) { return is_in(stack, kQueues, {"_feed"}); }
bool runs_import(const model::Stack& stack) {
  return is_in(stack, kImport, {"_load_unlocked", "_find_and_load_unlocked"});
}

using Predicate = bool (*)(const model::Stack&);

// Returns a wait whose partner is a lost thread that was in the matching function at the fork. `is_at_it` recognises
// the stack of a thread that is in this function. nullopt if no lost thread was in the matching function, or if another
// thread of the child is in that function now.
std::optional<Wait> find_partner(const Evidence& evidence, const model::Fork& fork, Need need, Predicate is_at_it) {
  const model::Model& model = evidence.model();
  const std::uint64_t own = model.threads[fork.forking_thread].pointer;
  for (const model::PythonThread& thread : model.python[*evidence.process(*fork.child).python]) {
    if (thread.pointer != own && is_at_it(thread.stack)) return std::nullopt;
  }
  for (const model::ThreadId id : fork.lost_threads) {
    const model::Stack* const at_fork = find_at_fork(model, fork, model.threads[id]);
    if (at_fork != nullptr && is_at_it(*at_fork)) return Wait{need, &model.threads[id], at_fork};
  }
  return std::nullopt;
}

const model::Stack* stack_of_child(const Evidence& evidence, const model::Fork& fork) {
  if (!fork.child || evidence.process(*fork.child).has_execed) return nullptr;
  const model::Model& model = evidence.model();
  return find_at_hang(model, evidence.process(*fork.child), model.threads[fork.forking_thread].pointer);
}

std::string name_lost(const model::Model& model, const model::Fork& fork) {
  std::string names;
  for (std::size_t i = 0; i < fork.lost_threads.size() && i < kMostNamed; ++i) {
    const model::Thread& thread = model.threads[fork.lost_threads[i]];
    const model::Stack* const at_fork = find_at_fork(model, fork, thread);
    names += (names.empty() ? "" : ", ") + words::thread(thread);
    if (at_fork != nullptr) names += fmt::format(" ({})", place(*at_fork));
  }
  const std::size_t more =
      fork.lost_threads.size() - std::min(fork.lost_threads.size(), kMostNamed) + fork.unknown_threads;
  return more > 0 ? fmt::format("{}{}{} more", names, names.empty() ? "" : " and ", more) : names;
}

// True if the child waits in map() of a ThreadPoolExecutor. Only then does its stack show that an executor is to set
// the result: any thread may set the result of another future.
bool is_in_map(const model::Stack& stack) {
  return is_in(stack, kFutures, {"result_iterator"}) && !is_in(stack, kProcessExecutor, {});
}

// Writes what is known of a wait for the result of a future. `worker`, `loop`: lost threads that may have been about to
// set the result, of a ThreadPoolExecutor and of asyncio; one of them may be missing.
void tell_future(const Evidence& evidence, const model::Fork& fork, const std::string& head,
                 const std::optional<Wait>& worker, const std::optional<Wait>& loop, Finding& finding) {
  const model::Process& child = evidence.process(*fork.child);
  const bool is_certain = worker && is_in_map(*stack_of_child(evidence, fork));
  const Wait& first = worker ? *worker : *loop;
  const std::string parent = words::parent(evidence.process(fork.process));
  const std::string forked = words::at(" at ", fork.stack);
  // A signal handler may raise an exception, and so end the wait. Python's own handler of Ctrl-C does so.
  finding.harm = no_signal_can_wake(child) ? Certainty::kProven : Certainty::kLikely;
  finding.cause = is_certain ? Certainty::kLikely : Certainty::kPossible;
  finding.outcome = Outcome::kHang;
  finding.may_be_intended = false;
  if (!is_certain && has_way_out(child)) set_may_be_intended(finding);
  finding.culprit.name = worker ? "a lost worker of a ThreadPoolExecutor" : "a lost event loop of asyncio";
  finding.culprit.holder = evidence.holder(*first.partner);
  finding.culprit.holder->start_routine = worker ? "_worker" : start_function(*first.partner_at_fork);
  finding.culprit.library.clear();
  finding.culprit.stack = *first.partner_at_fork;
  finding.culprit.is_at_fork = true;
  if (is_certain) {
    finding.summary =
        fmt::format("{}: the worker of the ThreadPoolExecutor, thread {}, was left behind when {} forked{}", head,
                    worker->partner->tid, parent, forked);
    add_sentence(finding, fmt::format("It waits for the result of a task. The child has no worker that could run it: "
                                      "at the fork{} {} had one, thread {}, which was not copied.",
                                      forked, parent, worker->partner->tid));
  } else {
    std::string names;
    if (worker) names = fmt::format("thread {}, a worker of a ThreadPoolExecutor", worker->partner->tid);
    if (loop) {
      names +=
          fmt::format("{}thread {}, which runs an event loop of asyncio", worker ? ", or " : "", loop->partner->tid);
    }
    finding.summary = fmt::format("{}: perhaps {}, was to set the result, and was left behind when {} forked{}", head,
                                  names, parent, forked);
    add_sentence(finding, fmt::format("It waits for the result of a future, and no thread of the child sets it. At the "
                                      "fork{} {} had {}; the child has no such thread. It is not known whether the "
                                      "future has anything to do with that: any thread may set its result.",
                                      forked, parent, names));
  }
  if (worker) {
    add_sentence(finding, "The copied executor still counts its worker, so submit() starts no other.");
    finding.fixes.push_back(
        {"If the future belongs to a ThreadPoolExecutor, make the executor in the child, after the fork.", true});
  }
  if (loop) {
    finding.fixes.push_back(
        {"If the future comes from asyncio.run_coroutine_threadsafe(), start a thread with an event loop in the child, "
         "after the fork."});
  }
}

}  // namespace

std::optional<Wait> find_wait(const Evidence& evidence, const model::Fork& fork) {
  const model::Stack* const stack = stack_of_child(evidence, fork);
  if (stack == nullptr || !is_proven_dead(evidence.process(*fork.child))) return std::nullopt;
  if (is_in(*stack, kImport, {"acquire"})) return find_partner(evidence, fork, Need::kModule, runs_import);
  if (is_in(*stack, kFutures, {"result", "exception"})) {
    return find_partner(evidence, fork, Need::kWorker, runs_executor);
  }
  if (is_in(*stack, kQueues, {})) return find_partner(evidence, fork, Need::kFeeder, runs_feeder);
  return std::nullopt;
}

bool is_explained(const Evidence& evidence, const model::Fork& fork) {
  const auto wait = find_wait(evidence, fork);
  return wait && wait->need != Need::kWorker;
}

bool rewrite_for_python(const Evidence& evidence, const model::Fork& fork, Finding& finding) {
  const model::Stack* const stack = stack_of_child(evidence, fork);
  if (stack == nullptr) return false;
  const auto worker = find_wait(evidence, fork);
  const model::Process& child = evidence.process(*fork.child);
  const std::string called = operation(*stack);
  const std::string doing = called.empty() ? std::string() : " in " + called;
  const std::string parent = words::parent(evidence.process(fork.process));
  const std::string forked = words::at(" at ", fork.stack);
  const std::string head =
      fmt::format("{} {}{}{}", process(evidence, *fork.child), hangs(child), words::at(" at ", *stack), doing);
  finding.chain.clear();
  add_sentence(finding, evidence.describe_liveness(child));
  finding.fixes.clear();
  const bool is_for_future = is_proven_dead(child) && is_in(*stack, kFutures, {"result", "exception"});
  const auto loop = is_for_future ? find_partner(evidence, fork, Need::kWorker, runs_loop) : std::nullopt;
  if (worker || loop) {
    tell_future(evidence, fork, head, worker, loop, finding);
  } else {
    finding.summary = fmt::format(
        "{}, which none of its threads will end, possibly because {} of its parent {} not copied by fork(){}", head,
        words::count(fork.lost_threads.size() + fork.unknown_threads, "thread", "threads"),
        fork.lost_threads.size() + fork.unknown_threads == 1 ? "was" : "were", forked);
    add_sentence(finding, fmt::format("It was forked{} from {}, which had more threads: {}.", forked, parent,
                                      name_lost(evidence.model(), fork)));
    add_sentence(finding,
                 "The child has none of these. If one of them was to end this wait, the child waits for ever, unless a "
                 "signal handler ends the wait.");
    finding.fixes.push_back(
        {"If the child needs such a thread, start it again there, after the fork: "
         "os.register_at_fork(after_in_child=...) names a function that does so."});
  }
  add_fixes(finding);
  return true;
}

}  // namespace forksight::python
