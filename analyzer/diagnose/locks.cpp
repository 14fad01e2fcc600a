#include "diagnose/locks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <unordered_set>

#include "diagnose/pools.hpp"
#include "diagnose/queues.hpp"
#include "diagnose/words.hpp"
#include "model/python_frames.hpp"

namespace forksight::locks {

namespace {

std::optional<Orphan> find_held(const model::Model& model, const model::Touch& touch) {
  if (touch.kind == model::TouchKind::kParallel || !touch.held) return std::nullopt;
  const model::Held& held = model.forks[touch.fork].held[*touch.held];
  return Orphan{held, model.locks[held.lock], model.threads[held.holder], model.forks[touch.fork], nullptr};
}

// The forking thread held a lock across the fork of this touch, so the forked process has a copy of that thread. The
// copy is the first thread of that process, and its tid is the pid. There may be further forks between the forked
// process and the touching process. If another thread than the copy called one of these forks, that fork lost the copy.
// Returns the first such fork. Null: the copy called all of these forks, or one of these forks is not known.
const model::Fork* find_fork_that_lost_it(const Evidence& evidence, const model::Touch& touch) {
  const model::Model& model = evidence.model();
  const model::Fork* lost_by = nullptr;
  model::ProcessId at = touch.process;
  std::unordered_set<model::ProcessId> seen;
  while (model.forks[touch.fork].child != at && seen.insert(at).second) {
    const auto made_by = evidence.forks_that_made(at);
    if (made_by.empty()) return nullptr;
    const model::Fork& fork = model.forks[made_by.front()];
    if (model.threads[fork.forking_thread].tid != model.processes[fork.process].pid) lost_by = &fork;
    at = fork.process;
  }
  return lost_by;
}

// Returns the copy of the thread that held the lock. If the copy is not in the list of threads that the fork lost,
// returns the thread that held the lock.
const model::Thread& find_first_thread(const model::Model& model, const model::Fork& fork, const Orphan& own) {
  for (const model::ThreadId lost : fork.lost_threads) {
    if (model.threads[lost].tid == model.processes[fork.process].pid) return model.threads[lost];
  }
  return own.holder;
}

// Returns the orphan if the lock was held at the fork, and this fork or a later one lost the holder.
std::optional<Orphan> find_lost(const Evidence& evidence, const model::Touch& touch) {
  const model::Model& model = evidence.model();
  auto found = find_held(model, touch);
  if (!found || !found->held.by_forking_thread) return found;
  const model::Fork* const lost_by = find_fork_that_lost_it(evidence, touch);
  if (lost_by == nullptr) return std::nullopt;
  return Orphan{found->held, found->lock, find_first_thread(model, *lost_by, *found), *lost_by, &found->holder};
}

// True if the owner's id in the lock may also mean a thread of the child, because the child is in another pid namespace
// than its parent.
bool may_be_of_child(const Orphan& orphan) {
  const bool has_owner =
      orphan.lock.kind == model::LockKind::kMutex || orphan.lock.kind == model::LockKind::kRwlockWrite;
  return has_owner && orphan.held.may_have_been_free;
}

// True if the call waits for a lock of Python that serves as a signal. The thread that took such a lock is not the
// thread that should release it. If forksight changed the lock or ended the process, the report must still say so.
bool is_signal_of_python(const model::Touch& touch) {
  return touch.action == model::TouchAction::kNone && model::is_python_signal(touch.stack);
}

// Describes the cause for a lock whose holder is not known.
std::string doubtful_cause(const Orphan& orphan, const std::string& where) {
  switch (orphan.lock.kind) {
    case model::LockKind::kSemaphore:
      return fmt::format(
          "its count is zero, possibly because a thread that fork(){} left behind had taken it or was to post it",
          where);
    case model::LockKind::kRwlockRead:
      return fmt::format("it has a reader, possibly one that fork(){} left behind", where);
    case model::LockKind::kSpinlock:
      return fmt::format("it is locked, possibly by a thread that fork(){} left behind", where);
    case model::LockKind::kGuard:
      return fmt::format("another thread initialises it, possibly one that fork(){} left behind", where);
    default:
      if (may_be_of_child(orphan)) {
        return fmt::format("possibly {} held it and was left behind by fork(){}, or a thread of this process holds it",
                           words::thread(orphan.holder), where);
      }
      return fmt::format("its owner, thread {}, is not there: possibly fork(){} left it behind", orphan.holder.tid,
                         where);
  }
}

// True if the hazard suite tests the advice to exec for this kind of lock.
bool is_tested_with_exec(const model::Lock& lock) {
  switch (lock.kind) {
    case model::LockKind::kMutex:
    case model::LockKind::kRwlockRead:
    case model::LockKind::kRwlockWrite:
    case model::LockKind::kSpinlock:
    case model::LockKind::kSemaphore: return true;
    default: return false;
  }
}

// True if the hazard suite tests the advice to use --on-orphan=recover or --on-orphan=abort for this kind of lock. A
// test with a normal mutex, for example, says nothing about a robust mutex.
bool is_tested_on_orphan(const model::Lock& lock) {
  if (lock.kind != model::LockKind::kMutex) return is_tested_with_exec(lock);
  const bool is_plain = !lock.robust && !lock.priority_inherit && !lock.process_shared;
  return is_plain && (lock.type == model::MutexType::kNormal || lock.type == model::MutexType::kRecursive);
}

std::string errno_words(int code) {
  const char* const name = ::strerrorname_np(code);
  return name == nullptr ? fmt::format("error {}", code) : name;
}

}  // namespace

std::optional<Orphan> find_any_orphan(const Evidence& evidence, const model::Touch& touch) {
  if (evidence.find_handler(touch) != nullptr || is_signal_of_python(touch)) return std::nullopt;
  if (touch.kind != model::TouchKind::kLock) return std::nullopt;
  return find_lost(evidence, touch);
}

std::optional<Orphan> find_orphan(const Evidence& evidence, const model::Touch& touch) {
  const bool has_finding =
      !pools::find_blas_library(evidence.model(), touch).empty() || queues::find_feeder(evidence, touch).has_value();
  return has_finding ? std::nullopt : find_any_orphan(evidence, touch);
}

std::optional<Orphan> find_own(const Evidence& evidence, const model::Touch& touch) {
  if (evidence.find_handler(touch) != nullptr || is_signal_of_python(touch)) return std::nullopt;
  auto found = find_held(evidence.model(), touch);
  const bool is_of_lock = touch.kind == model::TouchKind::kLock || touch.kind == model::TouchKind::kUnlockRefused;
  if (!found || !is_of_lock || !found->held.by_forking_thread) return std::nullopt;
  return find_fork_that_lost_it(evidence, touch) == nullptr ? found : std::nullopt;
}

std::optional<Orphan> find_awaited(const Evidence& evidence, const model::Touch& touch) {
  auto found = find_held(evidence.model(), touch);
  if (!found || found->held.by_forking_thread) return std::nullopt;
  const bool agrees = (touch.kind == model::TouchKind::kCondition && found->lock.kind == model::LockKind::kCondition) ||
                      (touch.kind == model::TouchKind::kBarrier && found->lock.kind == model::LockKind::kBarrier);
  return agrees ? found : std::nullopt;
}

std::optional<CallEnd> find_end(const Evidence& evidence, const model::Touch& touch) {
  const bool is_cured = touch.action == model::TouchAction::kRecovered || touch.action == model::TouchAction::kGiven;
  if (is_cured) return CallEnd{Certainty::kProven, Outcome::kCured};
  if (touch.action == model::TouchAction::kAborted) return CallEnd{Certainty::kProven, Outcome::kError};
  if (touch.returned) {
    // If the result is EOWNERDEAD, the thread got the lock. A robust mutex is meant to return this value.
    if (touch.result == 0 || touch.result == EOWNERDEAD) return std::nullopt;
    return CallEnd{Certainty::kProven, Outcome::kError};
  }
  const auto hang = evidence.find_hang(touch);
  if (!hang) return std::nullopt;
  // If the call has a deadline, it ends without the lock.
  if (touch.timed) return CallEnd{Certainty::kLikely, Outcome::kError};
  return CallEnd{*hang, Outcome::kHang};
}

Culprit describe_lock(const Evidence& evidence, const Orphan& orphan) {
  Culprit culprit;
  culprit.kind = CulpritKind::kLock;
  culprit.name = orphan.lock.name.empty() ? words::lock(orphan.lock)
                                          : fmt::format("{} ({})", orphan.lock.name, words::lock_kind(orphan.lock));
  culprit.library = orphan.lock.module;
  culprit.address = orphan.lock.address;
  culprit.holder = evidence.holder(orphan.holder);
  culprit.is_waited_for =
      orphan.lock.kind == model::LockKind::kCondition || orphan.lock.kind == model::LockKind::kBarrier;
  culprit.stack = orphan.held.acquired_at;
  if (!culprit.stack.known() && orphan.held.holder_now.known()) {
    culprit.stack = orphan.held.holder_now;
    culprit.is_now = true;
  }
  return culprit;
}

std::string name_waiters(const Orphan& orphan) {
  const std::string first = words::thread(orphan.holder);
  return orphan.held.waiters > 1 ? fmt::format("{} and {} more", first, orphan.held.waiters - 1) : first;
}

std::string name(const model::Touch& touch, const model::Lock& lock) {
  if (!lock.name.empty() || !words::is_python_lock(touch.stack)) return words::lock(lock);
  return fmt::format("a Python lock ({} at {:#x})", words::lock_kind(lock), lock.address);
}

std::string head(const Evidence& evidence, const model::Touch& touch, const model::Lock& lock, const CallEnd& end,
                 const char* verb) {
  const std::string child = evidence.name(touch.process);
  std::string place = words::place(touch.stack);
  if (!place.empty()) place = fmt::format(" ({})", place);
  const std::string name = locks::name(touch, lock);
  switch (end.outcome) {
    case Outcome::kCured:
      return fmt::format("{} would have hung {} {}{}; recovered: forksight re-initialised it", child, verb, name,
                         place);
    case Outcome::kError:
      if (touch.action == model::TouchAction::kAborted) {
        return fmt::format("{} was aborted by --on-orphan=abort {} {}{}", child, verb, name, place);
      }
      if (touch.returned) {
        return fmt::format("{} failed {} {}{} with {}", child, verb, name, place,
                           touch.timed && touch.result < 0 ? "ETIMEDOUT" : errno_words(touch.result));
      }
      if (touch.timed) return fmt::format("{} waits in vain {} {}{}, until its deadline", child, verb, name, place);
      return fmt::format("{} is aborted by libc {} {}{}", child, verb, name, place);
    default: return fmt::format("{} {} {} {}{}", child, hangs(evidence.process(touch.process)), verb, name, place);
  }
}

std::string cause(const Evidence& evidence, const model::Touch& touch, const Orphan& orphan) {
  const std::string taken = words::place(orphan.held.acquired_at);
  if (evidence.find_cause(touch) == Certainty::kPossible)
    return doubtful_cause(orphan, words::at(" at ", orphan.fork.stack));
  if (orphan.holder.has_ended) {
    return fmt::format("{} {} and ended without releasing it, before fork(){}", words::thread(orphan.holder),
                       taken.empty() ? "held it" : "took it at " + taken, words::at(" at ", orphan.fork.stack));
  }
  if (orphan.taker != nullptr) {
    return fmt::format("{} {} and forked, and its copy, {}, was left behind by fork(){}", words::thread(*orphan.taker),
                       taken.empty() ? "held it" : "took it at " + taken, words::thread(orphan.holder),
                       words::at(" at ", orphan.fork.stack));
  }
  return fmt::format("{} {} and was left behind by fork(){}", words::thread(orphan.holder),
                     taken.empty() ? "held it" : "took it at " + taken, words::at(" at ", orphan.fork.stack));
}

std::string reason_for_doubt(const Orphan& orphan) {
  switch (orphan.lock.kind) {
    case model::LockKind::kSemaphore:
      return "A semaphore does not record who took it, or whether anybody did. Perhaps a lost thread took it as a "
             "lock, or should have posted it as a signal. Perhaps no thread did either.";
    case model::LockKind::kRwlockRead:
      return "A rwlock counts its readers but does not name them. One of them may be a lost thread, a thread that has "
             "ended, or a thread of this process.";
    case model::LockKind::kSpinlock:
      return "A spinlock does not record which thread locked it. That may be a lost thread, the thread that forked, or "
             "a "
             "thread of this process.";
    case model::LockKind::kGuard:
      return "A guard variable does not record which thread initialises the variable. That may be a lost thread, or "
             "another thread of this process.";
    default:
      if (may_be_of_child(orphan)) {
        return fmt::format(
            "The lock names its owner by a number that two threads have had: {} in the pid namespace of the parent, "
            "and a thread of this process in its own pid namespace. If the thread of this process holds the lock, the "
            "threads of this process deadlock, and the fork is not the cause.",
            words::thread(orphan.holder));
      }
      return fmt::format(
          "The lock names thread {} as its owner, which this process does not have. That may be a lost thread, a "
          "thread that has ended, or this process's own first thread under the number that it had before a fork.",
          orphan.holder.tid);
  }
}

void tell(const Evidence& evidence, const model::Touch& touch, const Orphan& orphan, const CallEnd& end,
          const char* verb, std::string nature, Finding& finding) {
  const model::Process& child = evidence.process(touch.process);
  const model::Fork& fork = orphan.fork;
  finding.fork = evidence.fork_site(fork);
  const std::string name = locks::name(touch, orphan.lock);
  const std::string where = words::place_with_function(touch.stack);
  add_sentence(finding, fmt::format("Thread {} of {} is {}{} {}.", touch.tid, evidence.name(touch.process),
                                    where.empty() ? where : fmt::format("at {}, ", where), verb, name));
  if (end.outcome == Outcome::kHang) add_sentence(finding, evidence.describe_liveness(child));
  if (evidence.find_cause(touch) == Certainty::kPossible) {
    const std::size_t lost = fork.lost_threads.size() + fork.unknown_threads;
    add_sentence(finding, reason_for_doubt(orphan));
    const std::string others = lost == 1 ? "not the other thread" : fmt::format("none of the other {} threads", lost);
    add_sentence(finding,
                 fmt::format("fork(){} copied the lock as it was, but {} of {}.", words::at(" at ", fork.stack), others,
                             words::parent(evidence.process(fork.process))));
    add_sentence(finding, std::move(nature));
    add_sentence(finding, describe_end(child));
    return;
  }
  const model::Thread& taker = orphan.taker == nullptr ? orphan.holder : *orphan.taker;
  const model::ProcessId taken_in = orphan.taker == nullptr ? fork.process : taker.process;
  add_sentence(
      finding,
      fmt::format("At {} fork the lock was held by {}{} of {}{}{}.", orphan.taker == nullptr ? "the" : "an earlier",
                  words::thread(taker), words::worker_of(taker), words::parent(evidence.process(taken_in)),
                  taker.start_routine.empty() ? std::string() : ", started with " + taker.start_routine,
                  words::at(", which took it at ", orphan.held.acquired_at)));
  if (orphan.taker != nullptr) {
    add_sentence(finding, fmt::format("That thread called fork(): {} of {} began as its copy.",
                                      words::thread(orphan.holder), words::parent(evidence.process(fork.process))));
  }
  if (orphan.held.holder_now.known()) {
    add_sentence(finding,
                 fmt::format("In {} that thread holds it now{}.", words::parent(evidence.process(fork.process)),
                             words::at(", and is now at ", orphan.held.holder_now)));
  }
  if (orphan.holder.tid == 0) {
    add_sentence(finding, "The lock does not record which thread that was. Only the shim could have recorded it.");
  }
  if (orphan.holder.has_ended) {
    add_sentence(finding,
                 "That thread ended with the lock held. Nobody can release it any more, neither in the parent nor in "
                 "the child: the fork is not the cause.");
  }
  if (!orphan.holder.has_ended)
    add_sentence(
        finding,
        fmt::format(
            "fork(){} copied the lock in its locked state, but only the thread that called fork: in the child nobody "
            "is left to release it.",
            words::at(" at ", fork.stack)));
  add_sentence(finding, std::move(nature));
  if (touch.by_owner)
    add_sentence(finding, "The holder is known from the lock's own memory; where it took the lock was not seen.");
  if (end.outcome == Outcome::kCured) {
    add_sentence(finding,
                 "forksight re-initialised the lock (--on-orphan=recover). The holder was in the middle of its work, "
                 "so the data that the lock protects may be half-changed. The child now uses that data.");
  }
  if (touch.action == model::TouchAction::kAborted) {
    add_sentence(finding, "forksight ended the child here (--on-orphan=abort), so that it fails instead of hanging.");
  } else {
    add_sentence(finding, describe_end(child));
  }
}

void add_fixes(const model::Process& process, const model::Touch& touch, const Orphan& orphan, const char* reset,
               Finding& finding) {
  const bool is_tested_of_mutex = orphan.lock.kind == model::LockKind::kMutex;
  if (orphan.holder.has_ended) {
    finding.fixes.push_back(
        {fmt::format(
             "Release {} on every way out of {}: a guard object (std::lock_guard) or pthread_cleanup_push() covers "
             "return, exceptions, pthread_exit() and cancellation.",
             words::lock(orphan.lock), words::thread(orphan.holder)),
         is_tested_of_mutex});
    finding.fixes.push_back(
        {"Make it a robust mutex (pthread_mutexattr_setrobust): the next thread that locks it gets EOWNERDEAD and can "
         "repair the data that it protects."});
  } else if (words::is_python(process)) {
    finding.fixes.push_back(
        {"In Python, start workers with multiprocessing.set_start_method(\"forkserver\") or \"spawn\": they begin "
         "without the parent's locks."});
    finding.fixes.push_back(
        {"For a lock of your own: make it anew in the child, with os.register_at_fork(after_in_child=...)."});
    if (!has_ended(process) && !process.is_core) {
      finding.fixes.push_back({fmt::format("See the Python lines of both sides: py-spy dump --pid {} and --pid {}.",
                                           process.pid, process.ppid)});
    }
  } else {
    finding.fixes.push_back(
        {"Exec right after fork(): then no lock of the parent matters.", is_tested_with_exec(orphan.lock)});
    finding.fixes.push_back({"Start another program by posix_spawn(): none of your code runs in its child."});
    finding.fixes.push_back(
        {fmt::format("Guard {} with pthread_atfork(): lock it in the prepare handler, unlock it in the parent handler, "
                     "and in the child handler {}.",
                     words::lock(orphan.lock), reset)});
  }
  if (!orphan.holder.has_ended) {
    finding.fixes.push_back(
        {fmt::format("Fork before {} is started, while the process has one thread.", words::thread(orphan.holder))});
  }
  const bool is_touched = touch.held.has_value();
  if (is_touched && touch.action == model::TouchAction::kNone && !touch.timed) {
    finding.fixes.push_back(
        {"To keep a job running for now: `forksight run --on-orphan=recover -- ...` re-initialises the lock when the "
         "child needs it. The data that it protects may be half-changed.",
         is_tested_on_orphan(orphan.lock)});
    finding.fixes.push_back({"To fail at once instead of hanging: `forksight run --on-orphan=abort -- ...`.",
                             is_tested_on_orphan(orphan.lock)});
  }
}

}  // namespace forksight::locks
