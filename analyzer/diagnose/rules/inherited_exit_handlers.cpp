// A forked child calls exit(). The exit handlers and static destructors that the parent registered run in the child.
// They stop, join or wait for threads that the child does not have. The rule reports a child that hangs or crashes in
// exit(), but not a child that gets through exit(). If the child hangs in exit() itself and not in a handler, it waits
// for the lock of libc's list of handlers. A lost thread held that lock while it registered a handler.
#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "diagnose/evidence.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

bool is_crash(int signal) {
  return signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == SIGFPE || signal == SIGILL;
}

// Returns how the child's exit() ended, a hang or a crash, and how certain that is. Returns nullopt if nothing shows a
// hang or a crash. exit() never returns. So the trace has no record of its return, even if nothing hung.
std::optional<CallEnd> find_end_of_exit(const Evidence& evidence, const model::Touch& touch) {
  const model::Process& child = evidence.process(touch.process);
  // find_hang() returns nullopt if nothing shows that exit() hung. It also returns nullopt if the thread touched
  // something later, for example in an exit handler. Then the rule for that touch reports any hang.
  if (!evidence.find_hang(touch)) return std::nullopt;
  if (is_proven_dead(child)) return CallEnd{Certainty::kProven, Outcome::kHang};
  if (child.liveness == model::Liveness::kSpinning) return CallEnd{Certainty::kLikely, Outcome::kHang};
  if (child.exit_status && WIFSIGNALED(*child.exit_status) && is_crash(WTERMSIG(*child.exit_status))) {
    return CallEnd{Certainty::kLikely, Outcome::kError};
  }
  return std::nullopt;
}

// Returns the wait of the thread inside of exit(), if a record shows it.
const model::Touch* find_wait(const Evidence& evidence, const model::Touch& exit) {
  const model::Touch* const wait = evidence.find_open_wait(exit.process);
  return wait != nullptr && wait->tid == exit.tid && wait->time_ns > exit.time_ns ? wait : nullptr;
}

// True if exit() itself waits, and not a handler. The only lock that exit() takes is the lock of its list of handlers.
// exit() releases this lock while a handler runs.
bool waits_for_list(const Evidence& evidence, const model::Touch& exit) {
  const model::Wait* const wait = evidence.find_wait(exit.process, exit.tid);
  if (wait == nullptr || wait->kind != model::WaitKind::kFutex) return false;
  const auto is_of_lock = [](const model::Frame& frame) {
    return frame.function == "futex_wait" || frame.function.find("lll_lock_wait") != std::string::npos;
  };
  const auto& frames = wait->stack.frames;
  const auto caller = std::ranges::find_if_not(frames, is_of_lock);
  return caller != frames.begin() && caller != frames.end() &&
         caller->function.find("run_exit_handlers") != std::string::npos;
}

void tell_list(const Evidence& evidence, const model::Touch& touch, Finding& finding) {
  const model::Fork& fork = evidence.fork(touch);
  const std::string lost = words::count(fork.lost_threads.size() + fork.unknown_threads, "thread", "threads");
  finding.culprit.kind = CulpritKind::kLock;
  finding.culprit.name = "libc's list of exit handlers";
  finding.summary = fmt::format(
      "{} {} in exit(){}: libc's list of exit handlers is locked, because one of the {} that fork(){} left behind held "
      "it",
      evidence.name(touch.process), hangs(evidence.process(touch.process)), words::at(" at ", touch.stack), lost,
      words::at(" at ", fork.stack));
  add_sentence(finding, fmt::format("Thread {} of {} called exit(){}, which waits for the lock of libc's list of exit "
                                    "handlers. No handler has been called yet, or the previous one has returned.",
                                    touch.tid, evidence.name(touch.process), words::at(" at ", touch.stack)));
  add_sentence(finding, evidence.describe_liveness(evidence.process(touch.process)));
  add_sentence(finding,
               "The lock is held while a handler is registered: by atexit(), and by the first use of a static or "
               "thread_local variable that has a destructor. fork() copied the locked lock into the child.");
  add_sentence(finding, "The lock names no owner, so the thread that held it is not known.");
}

void tell_handlers(const Evidence& evidence, const model::Touch& touch, const CallEnd& end, Finding& finding) {
  const model::Process& child = evidence.process(touch.process);
  const model::Fork& fork = evidence.fork(touch);
  const model::Touch* const wait = find_wait(evidence, touch);
  const std::size_t lost = fork.lost_threads.size() + fork.unknown_threads;
  finding.culprit.kind = CulpritKind::kHandler;
  finding.culprit.name = "exit handlers of the parent";
  if (wait != nullptr) finding.stack = wait->stack;
  const std::string handler = wait == nullptr ? std::string() : words::at(", in a handler at ", wait->stack);
  finding.summary = fmt::format(
      "{} {} in exit(){}{}: the parent's exit handlers run in the child, without the {} that fork(){} left behind",
      evidence.name(touch.process), end.outcome == Outcome::kError ? "crashed" : hangs(child),
      words::at(" at ", touch.stack), handler, words::count(lost, "thread", "threads"), words::at(" at ", fork.stack));
  add_sentence(finding, fmt::format("Thread {} of {} called exit(){}, and the exit never finished.", touch.tid,
                                    evidence.name(touch.process), words::at(" at ", touch.stack)));
  if (wait != nullptr) {
    add_sentence(finding, fmt::format("An exit handler or static destructor waits{}.", words::at(" at ", wait->stack)));
  }
  add_sentence(finding, evidence.describe_liveness(child));
  add_sentence(
      finding,
      fmt::format(
          "exit() runs all static destructors, and the functions that {}, the parent, registered with atexit(). "
          "They were written for the parent, and may stop or join threads that the child does not have.",
          words::parent(evidence.process(fork.process))));
}

}  // namespace

void inherited_exit_handlers(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    if (touch.kind != model::TouchKind::kExit) continue;
    const auto end = find_end_of_exit(evidence, touch);
    if (!end) continue;
    const model::Process& child = evidence.process(touch.process);
    const bool is_list = end->outcome == Outcome::kHang && waits_for_list(evidence, touch);
    Finding finding = evidence.begin_finding("inherited-exit-handlers", touch);
    finding.harm = end->harm;
    finding.cause = Certainty::kLikely;
    finding.outcome = end->outcome;
    if (is_list) {
      tell_list(evidence, touch, finding);
    } else {
      tell_handlers(evidence, touch, *end, finding);
    }
    add_sentence(finding, describe_end(child));
    finding.fixes.push_back({"If a forked child does not exec, end it by _exit(): it runs no handlers.", true});
    finding.fixes.push_back({"If the child's own output is buffered, call fflush(stdout) before _exit()."});
    if (!is_list)
      finding.fixes.push_back(
          {"In the handler, do nothing in a process other than the one that registered it. For this, store getpid() "
           "when you "
           "register the handler, and compare it in the handler."});
    if (words::is_python(child)) finding.fixes.push_back({"In Python, end such a child by os._exit()."});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
