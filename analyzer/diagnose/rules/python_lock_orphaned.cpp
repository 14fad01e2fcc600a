// Another thread held a lock of CPython at the fork: a threading.Lock, or something that is built on it. Examples are
// queue.Queue, Condition, and the locks of modules being imported and of buffered files. CPython re-initialises a few
// of its own locks in the child. The others stay taken. Up to CPython 3.12 these locks are semaphores. Since 3.13 each
// lock is a byte (PyMutex). No signal handler releases such a lock, but a handler may raise an exception, and so end
// the wait. So the hang is only likely if the program has handlers other than Python's own handler of Ctrl-C. If it is
// not proven that another thread held the lock, the child may wait until Ctrl-C, too. Then this handler counts, too.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "diagnose/locks.hpp"
#include "diagnose/python.hpp"
#include "diagnose/python_waits.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

std::string tell_wait(const model::Touch& touch) {
  const std::string operation = python::operation(touch.stack);
  const std::string where = words::at(" at ", touch.stack);
  return operation.empty() ? where + ", acquiring a lock of Python" : fmt::format("{} in {}", where, operation);
}

// Returns text such as "thread 4240 "loader" (loader.py:33, load)".
std::string tell_holder(const model::Thread& thread, const model::Stack* at_fork) {
  const std::string place = at_fork == nullptr ? std::string() : python::place(*at_fork);
  // If the program gave the thread no name, the kernel shows the name of the interpreter.
  const bool has_name_of_interpreter = thread.name.starts_with("python");
  const bool shows_tid_alone = thread.tid != 0 && (thread.name.empty() || has_name_of_interpreter);
  const std::string name = shows_tid_alone ? fmt::format("thread {}", thread.tid) : words::thread(thread);
  return name + (place.empty() ? place : fmt::format(" ({})", place));
}

bool is_of_python(const model::Lock& lock, const model::Touch& touch) {
  return lock.kind == model::LockKind::kPython ||
         (lock.kind == model::LockKind::kSemaphore && words::is_python_semaphore(touch.stack));
}

std::string head(const Evidence& evidence, const model::Touch& touch, const CallEnd& end) {
  const std::string child = python::process(evidence, touch.process);
  const std::string wait = tell_wait(touch);
  switch (end.outcome) {
    case Outcome::kCured:
      return fmt::format("{} would have hung{}; recovered: forksight re-initialised the lock", child, wait);
    case Outcome::kMayHang: return fmt::format("{} waits{}, likely for ever", child, wait);
    case Outcome::kHang: return fmt::format("{} {}{}", child, hangs(evidence.process(touch.process)), wait);
    default: break;
  }
  if (touch.action == model::TouchAction::kAborted)
    return fmt::format("{} was aborted by --on-orphan=abort{}", child, wait);
  return touch.returned ? fmt::format("{} gave up{}: its time limit was over", child, wait)
                        : fmt::format("{} waits in vain{}, until its time limit is over", child, wait);
}

// True if a thread is known to have held the lock at the fork: the shim has seen it, or the lock, an RLock, names it.
bool is_holder_known(const locks::Orphan& orphan, Certainty cause) {
  return cause == Certainty::kProven || (cause == Certainty::kLikely && orphan.holder.tid != 0);
}

// Says which thread may have held the lock. The lock does not record its holder, and no shim has seen who took it.
void tell_doubt(const Evidence& evidence, const model::Touch& touch, const locks::Orphan& orphan, Finding& finding) {
  const model::Fork& fork = evidence.fork(touch);
  const std::string parent = words::parent(evidence.process(fork.process));
  const std::string at = words::at(" at ", fork.stack);
  add_sentence(finding, "The lock is taken. A lock of Python does not record its holder.");
  if (finding.cause == Certainty::kPossible) {
    add_sentence(finding, fmt::format("In {} the lock is free now, or something else is in its place. Perhaps another "
                                      "thread held it at the fork{}: then fork() copied the lock in its locked state, "
                                      "and in the child nobody is left to "
                                      "release it. Or a thread of the child has taken it since.",
                                      parent, at));
  } else {
    add_sentence(finding, fmt::format("Probably another thread of {} held it at the fork{}: then fork() copied the "
                                      "lock in its locked state, and in the child nobody is left to release it. It is "
                                      "less likely that the forking thread held it, or that a thread of the child has "
                                      "taken it since.",
                                      parent, at));
  }
  if (orphan.lock.kind == model::LockKind::kSemaphore)
    add_sentence(finding, "Under `forksight run` the shim records which thread holds such a lock at a fork.");
}

// Returns text such as "the lock was held by thread 4240 "loader" when process 4242 forked at train.py:50".
std::string tell_cause(const Evidence& evidence, const model::Touch& touch, const locks::Orphan& orphan,
                       Certainty cause, const model::Stack* at_fork) {
  const model::Fork& fork = evidence.fork(touch);
  const std::string when =
      fmt::format("when {} forked{}", words::parent(evidence.process(fork.process)), words::at(" at ", fork.stack));
  if (cause == Certainty::kPossible)
    return fmt::format("the lock is taken; perhaps another thread held it {}, or the child took it itself", when);
  const char* const how = is_holder_known(orphan, cause) ? "" : "probably ";
  return fmt::format("the lock was {}held by {} {}", how, tell_holder(orphan.holder, at_fork), when);
}

void tell_chain(const Evidence& evidence, const model::Touch& touch, const locks::Orphan& orphan, const CallEnd& end,
                const model::Stack* at_fork, Finding& finding) {
  const model::Fork& fork = evidence.fork(touch);
  add_sentence(finding,
               fmt::format("Thread {} of {} waits{}.", touch.tid, evidence.name(touch.process), tell_wait(touch)));
  if (end.outcome == Outcome::kHang) add_sentence(finding, evidence.describe_liveness(evidence.process(touch.process)));
  if (is_holder_known(orphan, finding.cause)) {
    std::string doing;
    if (at_fork != nullptr) {
      const std::string operation = python::operation(*at_fork);
      doing = fmt::format(", which was then at {}{}", python::place(*at_fork),
                          operation.empty() ? operation : fmt::format(" in {}", operation));
    }
    add_sentence(finding,
                 fmt::format("At the fork{} the lock was held by {} of {}{}.", words::at(" at ", fork.stack),
                             words::thread(orphan.holder), words::parent(evidence.process(fork.process)), doing));
    // The shim does not see locks of the kind kPython. If the holder of such a lock is known, the lock is an RLock,
    // because an RLock records its owner.
    const bool names_owner = orphan.lock.kind == model::LockKind::kPython && orphan.holder.tid != 0;
    add_sentence(
        finding,
        fmt::format(
            "fork() copied the lock in its locked state, but copied only the thread that called fork(): in the "
            "child nobody is left to release it. {}",
            names_owner
                ? "The lock itself, an RLock, names that thread as its owner."
                : "A lock of Python does not record its holder, so the lock cannot notice that its holder is gone."));
  } else {
    tell_doubt(evidence, touch, orphan, finding);
  }
  if (end.outcome == Outcome::kHang && evidence.process(touch.process).liveness == model::Liveness::kDeadButForSignal)
    add_sentence(finding, finding.cause == Certainty::kProven
                              ? "A signal handler of Python may end the wait by an exception, as Ctrl-C does, but no "
                                "handler releases the lock."
                              : "A signal handler of Python may end the wait by an exception, as Ctrl-C does. Perhaps "
                                "the program is meant to wait for that.");
  if (end.outcome == Outcome::kMayHang)
    add_sentence(finding, "Another thread of the child could still release it: it is not proven that none does.");
  if (end.outcome == Outcome::kCured) {
    add_sentence(finding,
                 "forksight re-initialised the lock (--on-orphan=recover). The holder was in the middle of its work, "
                 "so the data that the lock protects may be half-changed. The child now uses that data.");
  }
  if (touch.action == model::TouchAction::kAborted) {
    add_sentence(finding, "forksight ended the child here (--on-orphan=abort), so that it fails instead of hanging.");
  } else {
    add_sentence(finding, describe_end(evidence.process(touch.process)));
  }
}

void add_fixes(const model::Touch& touch, const model::Lock& lock, Finding& finding) {
  python::add_fixes(finding);
  finding.fixes.push_back(
      {"For a lock of your own: os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, "
       "after_in_child=lock.release): every fork then waits for the holder.",
       true});
  // The shim does not see operations on the byte of a PyMutex.
  const bool is_seen_by_shim = lock.kind == model::LockKind::kSemaphore;
  if (touch.action != model::TouchAction::kNone || touch.timed || !is_seen_by_shim) return;
  finding.fixes.push_back(
      {"To keep a job running for now: `forksight run --on-orphan=recover -- ...` re-initialises the lock when the "
       "child needs it. The data that it protects may be half-changed."});
  finding.fixes.push_back({"To fail at once instead of hanging: `forksight run --on-orphan=abort -- ...`."});
}

// The lock that guards the import of a module consists of two locks and a count, and only Python knows the owner. So no
// recorded touch shows that a lost thread held the lock. But the Python stacks of the child and of the lost thread
// together show this.
Finding describe_import(const Evidence& evidence, const model::Fork& fork, const python::Wait& wait) {
  const model::ProcessId child = *fork.child;
  Finding finding = evidence.begin_finding("python-lock-orphaned", fork);
  // A signal handler of Python may raise an exception, and so end the wait.
  finding.harm = has_way_out(evidence.process(child)) ? Certainty::kLikely : Certainty::kProven;
  finding.cause = Certainty::kProven;
  finding.outcome = Outcome::kHang;
  finding.culprit.name = "the lock of a module that is being imported";
  finding.culprit.holder = evidence.holder(*wait.partner);
  finding.culprit.holder->start_routine = python::start_function(*wait.partner_at_fork);
  finding.culprit.holder->library.clear();
  finding.culprit.stack = *wait.partner_at_fork;
  finding.culprit.is_at_fork = true;
  finding.summary = fmt::format("{} {}{} in import: the module was being imported by {} when {} forked{}",
                                python::process(evidence, child), hangs(evidence.process(child)),
                                words::at(" at ", finding.stack), tell_holder(*wait.partner, wait.partner_at_fork),
                                words::parent(evidence.process(fork.process)), words::at(" at ", fork.stack));
  add_sentence(finding, evidence.describe_liveness(evidence.process(child)));
  add_sentence(finding, fmt::format("It waits until another thread has imported the module. At the fork{} {} of {} was "
                                    "importing it; the child does not have that thread.",
                                    words::at(" at ", fork.stack), words::thread(*wait.partner),
                                    words::parent(evidence.process(fork.process))));
  python::add_fixes(finding);
  finding.fixes.push_back({"Import the module before the thread is started.", true});
  return finding;
}

}  // namespace

void python_lock_orphaned(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  std::set<model::ProcessId> importing;
  for (const model::Fork& fork : model.forks) {
    const auto wait = python::find_wait(evidence, fork);
    if (!wait || wait->need != python::Need::kModule) continue;
    importing.insert(*fork.child);
    findings.push_back(describe_import(evidence, fork, *wait));
  }
  for (const model::Touch& touch : model.touches) {
    // If the child waits for a module, another lost thread held this lock while it waited for the same module. The
    // finding about the module explains the cause.
    if (importing.contains(touch.process) && touch.tid == evidence.process(touch.process).pid && !touch.returned)
      continue;
    const auto orphan = locks::find_orphan(evidence, touch);
    if (!orphan || !is_of_python(orphan->lock, touch)) continue;
    // A signal interrupted the call: the call returned although it had no deadline, and although forksight did nothing
    // to the lock. The interpreter then makes the call again.
    if (touch.returned && !touch.timed && touch.action == model::TouchAction::kNone) continue;
    auto end = locks::find_end(evidence, touch);
    if (!end) continue;
    const model::Process& child = evidence.process(touch.process);
    if (end->outcome == Outcome::kHang && !is_proven_dead(child)) {
      *end = {Certainty::kLikely, Outcome::kMayHang};
    }
    const model::Stack* const at_fork = python::find_at_fork(model, evidence.fork(touch), orphan->holder);
    Finding finding = evidence.begin_finding("python-lock-orphaned", touch);
    finding.harm = end->harm;
    finding.cause = evidence.find_cause(touch);
    if (end->outcome == Outcome::kHang && finding.cause != Certainty::kProven && !no_signal_can_wake(child))
      finding.harm = std::min(finding.harm, Certainty::kLikely);
    finding.outcome = end->outcome;
    finding.culprit = locks::describe_lock(evidence, *orphan);
    finding.culprit.name =
        fmt::format("a lock of Python ({}at {:#x})",
                    orphan->lock.kind == model::LockKind::kSemaphore ? "semaphore " : "", orphan->lock.address);
    if (finding.cause == Certainty::kPossible) finding.culprit.holder.reset();
    if (at_fork != nullptr && finding.culprit.holder) {
      finding.culprit.stack = *at_fork;
      finding.culprit.is_at_fork = true;
      finding.culprit.holder->start_routine = python::start_function(*at_fork);
      finding.culprit.holder->library.clear();
    }
    finding.summary = fmt::format("{}: {}", head(evidence, touch, *end),
                                  tell_cause(evidence, touch, *orphan, finding.cause, at_fork));
    tell_chain(evidence, touch, *orphan, *end, at_fork, finding);
    if (!is_holder_known(*orphan, finding.cause))
      finding.fixes.push_back(
          {"Look whether the child took the lock itself. A thread that takes a threading.Lock twice "
           "waits for itself; a threading.RLock lets it."});
    add_fixes(touch, orphan->lock, finding);
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
