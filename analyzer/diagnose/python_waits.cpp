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
  const auto wait = find_wait(evidence, fork);
  const model::Process& child = evidence.process(*fork.child);
  const std::string called = operation(*stack);
  const std::string doing = called.empty() ? std::string() : " in " + called;
  const std::string parent = words::parent(evidence.process(fork.process));
  const std::string forked = words::at(" at ", fork.stack);
  const std::string head =
      fmt::format("{} {}{}{}", process(evidence, *fork.child), hangs(child), words::at(" at ", *stack), doing);
  finding.chain.clear();
  add_sentence(finding, describe_liveness(child));
  finding.fixes.clear();
  if (wait) {
    // A signal handler may raise an exception, and so end the wait. Python's own handler of Ctrl-C does so.
    finding.harm = no_signal_can_wake(child) ? Certainty::kProven : Certainty::kLikely;
    // The stacks do not show which executor should deliver the result.
    finding.cause = Certainty::kLikely;
    finding.outcome = Outcome::kHang;
    finding.may_be_intended = false;
    finding.culprit.name = "a lost worker of a ThreadPoolExecutor";
    finding.culprit.holder = evidence.holder(*wait->partner);
    finding.culprit.holder->start_routine = "_worker";
    finding.culprit.library.clear();
    finding.culprit.stack = *wait->partner_at_fork;
    finding.culprit.is_at_fork = true;
    finding.summary =
        fmt::format("{}: the worker of the ThreadPoolExecutor, thread {}, was left behind when {} forked{}", head,
                    wait->partner->tid, parent, forked);
    add_sentence(finding, fmt::format("It waits for the result of a task. The child has no worker that could run it: "
                                      "at the fork{} {} had one, thread {}, which was not copied.",
                                      forked, parent, wait->partner->tid));
    add_sentence(finding, "The copied executor still counts its worker, so submit() starts no other.");
    finding.fixes.push_back({"Make the executor in the child, after the fork.", true});
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
