#include "diagnose/evidence.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "diagnose/ended_threads.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"
#include "model/python_frames.hpp"

namespace forksight {

using model::Liveness;

namespace {

constexpr std::size_t kMostNamedProcesses = 8;  // the most processes that one sentence names

std::string describe_waits(const model::Process& process) {
  const auto alive = std::ranges::count_if(process.waits, [](const auto& wait) { return !has_thread_ended(wait); });
  const bool all_futex = alive > 0 && std::ranges::all_of(process.waits, [](const auto& wait) {
                           return wait.kind == model::WaitKind::kFutex || has_thread_ended(wait);
                         });
  const char* const where = all_futex ? " in a futex" : "";
  // A core shows only one instant, so it says nothing about durations.
  if (alive > 1)
    return fmt::format("all its {} threads {}{} without a timeout", alive, process.is_core ? "sleep" : "have slept",
                       where);
  return fmt::format("its only thread {}{} without a timeout", process.is_core ? "sleeps" : "has slept", where);
}

std::string thread_name(const model::Model& model, const model::Touch& touch, const model::Wait* seen) {
  if (seen != nullptr && !seen->name.empty()) return seen->name;
  // The first thread of a forked process has the name of the thread that forked.
  const model::Process& process = model.processes[touch.process];
  const model::Fork& fork = model.forks[touch.fork];
  return touch.tid == process.pid && fork.child == touch.process ? model.threads[fork.forking_thread].name
                                                                 : std::string();
}

}  // namespace

bool is_open_hazard(const model::Touch& touch) {
  return !touch.returned && !touch.cured && touch.kind != model::TouchKind::kFutexWait &&
         !model::is_python_signal(touch.stack);
}

bool is_proven_dead(const model::Process& process) {
  return process.liveness == Liveness::kDead || process.liveness == Liveness::kDeadButForSignal;
}

bool is_dead_in_futex(const model::Process& process) {
  return is_proven_dead(process) && std::ranges::any_of(process.waits, [](const model::Wait& wait) {
           return wait.kind == model::WaitKind::kFutex;
         });
}

bool no_signal_can_wake(const model::Process& process) { return process.liveness == Liveness::kDead; }

bool has_way_out(const model::Process& process) {
  return process.liveness == Liveness::kDeadButForSignal && !process.ways_out.empty();
}

void set_may_be_intended(Finding& finding) {
  finding.harm = Certainty::kPossible;
  finding.outcome = Outcome::kMayHang;
  finding.may_be_intended = true;
}

bool has_ended(const model::Process& process) {
  return process.liveness == Liveness::kEnded || process.exit_status.has_value();
}

Evidence::Evidence(const model::Model& model, RuleClock& clock)
    : model_(model),
      clock_(clock),
      cycles_(cycles::find_cycles(model, cycles::kMostSearchSteps, &clock)),
      lock_rings_(orders::find_rings(model)),
      has_open_hazard_(model.processes.size()),
      is_in_handler_(model.processes.size()),
      forks_by_child_(model.processes.size()) {
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    processes_by_pid_[model.processes[id].pid].push_back(id);
    for (const model::Wait& wait : model.processes[id].waits) waits_.try_emplace({id, wait.tid}, &wait);
  }
  const auto saw = [&](model::ProcessId process, std::int32_t tid, std::uint64_t time_ns) {
    std::uint64_t& last = last_act_[{process, tid}];
    last = std::max(last, time_ns);
  };
  for (model::ForkId id = 0; id < model.forks.size(); ++id) {
    const model::Fork& fork = model.forks[id];
    if (fork.child) forks_by_child_[*fork.child].push_back(id);
    saw(fork.process, model.threads[fork.forking_thread].tid, fork.time_ns);
  }
  for (const model::Touch& touch : model.touches) {
    if (touch.kind == model::TouchKind::kFutexWait && !touch.returned) open_waits_[touch.process] = &touch;
    if (!is_open_hazard(touch)) continue;
    has_open_hazard_[touch.process] = true;
    std::uint64_t& last = last_open_[{touch.process, touch.tid}];
    last = std::max(last, touch.time_ns);
  }
  for (const cycles::Cycle& ring : cycles_.found) {
    for (std::size_t index = 0; index < ring.size(); ++index) {
      places_in_rings_[{ring[index].process, ring[index].wait->tid}].push_back({&ring, index});
    }
  }
  for (const model::HandlerRun& run : model.handler_runs) {
    is_in_handler_[run.process] = true;
    const model::HandlerRun*& outermost = handlers_[{run.process, run.tid}];
    if (outermost == nullptr || run.since_ns < outermost->since_ns) outermost = &run;
  }
  for (const model::Touch& touch : model.touches) {
    // A futex wait does not show that an earlier call of the thread has returned. The thread may be in a lock call that
    // was recorded before, and wait there for the lock.
    if (touch.kind != model::TouchKind::kFutexWait) saw(touch.process, touch.tid, touch.time_ns);
  }
}

std::string Evidence::name(model::ProcessId id) const {
  clock_.check();
  return words::process(model_.processes[id], !forks_by_child_[id].empty());
}

std::span<const model::ProcessId> Evidence::processes_with_pid(std::int32_t pid) const {
  clock_.check();
  const auto found = processes_by_pid_.find(pid);
  return found == processes_by_pid_.end() ? std::span<const model::ProcessId>() : found->second;
}

const model::Process* Evidence::find_untouched_child(const model::Fork& fork) const {
  clock_.check();
  if (!fork.child || has_open_hazard_[*fork.child]) return nullptr;
  const model::Process& child = process(*fork.child);
  return child.has_execed ? nullptr : &child;
}

const model::Touch* Evidence::find_open_wait(model::ProcessId id) const {
  clock_.check();
  const auto found = open_waits_.find(id);
  return found == open_waits_.end() ? nullptr : found->second;
}

const model::HandlerRun* Evidence::find_handler(const model::Touch& touch) const {
  clock_.check();
  if (touch.returned || touch.cured || touch.timed || touch.action != model::TouchAction::kNone) return nullptr;
  const auto found = handlers_.find({touch.process, touch.tid});
  return found != handlers_.end() && found->second->since_ns <= touch.time_ns ? found->second : nullptr;
}

bool Evidence::did_return(const model::Touch& touch) const {
  // Inside of a parallel region the program's own code runs, and may make other calls. The return of such a call does
  // not show that the region has ended.
  if (touch.kind == model::TouchKind::kParallel) {
    const auto open = last_open_.find({touch.process, touch.tid});
    return open != last_open_.end() && open->second > touch.time_ns;
  }
  const auto last = last_act_.find({touch.process, touch.tid});
  return last != last_act_.end() && last->second > touch.time_ns;
}

// True if forksight saw only from outside that the process spins. This is an observation and no proof.
bool Evidence::is_guess(const model::Touch& touch) const {
  return fork(touch).is_inferred && process(touch.process).liveness == model::Liveness::kSpinning;
}

// The child waits for an object that no thread can release any more. True if it is not known which thread held this
// object. It is always known if the trace has a record of the fork. It may be unknown if the fork was inferred from the
// present state of the processes.
bool Evidence::has_unknown_holder(const model::Touch& touch) const {
  if (!fork(touch).is_inferred) return false;
  const auto is_known = [&](model::ThreadId id) {
    return model_.threads[id].tid != 0 || !model_.threads[id].start_routine.empty();
  };
  if (touch.in_flight) return !is_known(fork(touch).calls[*touch.in_flight].thread);
  if (!touch.held) return false;
  const model::Held& held = fork(touch).held[*touch.held];
  return model_.locks[held.lock].kind == model::LockKind::kGuard && !is_known(held.holder);
}

// True if a signal handler may end the wait in the call that the touch records. A wait for a semaphore, or for a lock
// of the program's own, may return after a handler. A handler may also raise an exception, as Python's handlers do. Or
// it may post the semaphore or unlock the lock. Waits for other locks go on after a handler. A core does not show which
// handlers exist.
bool Evidence::may_be_interrupted(const model::Touch& touch) const {
  const model::Process& about = process(touch.process);
  const bool has_handler = has_way_out(about) || (about.is_core && !no_signal_can_wake(about));
  if (!has_handler || !touch.held) return false;
  const model::LockKind kind = model_.locks[fork(touch).held[*touch.held].lock].kind;
  return kind == model::LockKind::kSemaphore || kind == model::LockKind::kPython || kind == model::LockKind::kCustom;
}

// A process may wait for the signal of a timer that the fork did not copy. Somebody may end such a process on purpose.
// forksight reports the wait nevertheless. A process may also end in a libc call before `run` saw it hang. Then the
// finding about the call is only possible (libc_calls.cpp).
bool Evidence::ended_unseen(const model::Touch& touch) const {
  const bool is_timer = touch.kind == model::TouchKind::kTimerWait || touch.kind == model::TouchKind::kLibcCall;
  // If a process locks a priority-inheriting mutex whose holder the fork did not copy, libc aborts the process.
  const bool ends_it = touch.held && model_.locks[fork(touch).held[*touch.held].lock].priority_inherit;
  // If the wait has a deadline, the finding does not claim a hang. It claims only that the wait is in vain.
  return !is_timer && !ends_it && !touch.timed && ended_unseen(touch.process);
}

// If somebody other than `run` ended the process before `run` saw it hang, the process may have waited as intended.
// Some processes are meant to sleep until somebody kills them.
bool Evidence::ended_unseen(model::ProcessId id) const {
  const model::Process& about = process(id);
  const bool was_watched = !model_.command.empty() && !about.is_unreadable;
  return was_watched && about.liveness == model::Liveness::kUnknown && !about.killed_by_run;
}

std::optional<Certainty> Evidence::find_hang(const model::Touch& touch) const {
  clock_.check();
  if (touch.returned || touch.cured || did_return(touch)) return std::nullopt;
  const model::Process& about = process(touch.process);
  // exec ends all other threads of the process. It also ends all calls that were made before the exec.
  if (about.has_execed) return std::nullopt;
  if (is_proven_dead(about)) return may_be_interrupted(touch) ? Certainty::kLikely : Certainty::kProven;
  // The record of the call's return may be one of the missing records.
  if (about.has_gaps) return Certainty::kLikely;
  // An OpenMP parallel region that computes for long on one thread looks like a region whose first thread spins because
  // it waits for the other threads of the region.
  if (touch.is_team_guess || is_guess(touch)) return Certainty::kLikely;
  if (about.stuck_for_ms > 0) return Certainty::kProven;
  if (ended_unseen(touch)) return std::nullopt;
  // Other threads of the process go on. One of them may still end the wait.
  if (about.liveness == model::Liveness::kAwake && !about.exit_status) return Certainty::kLikely;
  if (!about.exit_status || !WIFEXITED(*about.exit_status)) return Certainty::kProven;
  // The process exited by itself. Perhaps a handler or another thread called exit() while this thread hung. Or the call
  // returned, and only the record of the return is missing.
  if (WEXITSTATUS(*about.exit_status) == 0 && touch.tid == about.pid) return std::nullopt;
  return Certainty::kLikely;
}

// True if the lock has other readers than those that the fork lost. There are two such cases: the lock counts more
// readers than the fork lost, or the forking thread held the lock, too.
bool Evidence::has_other_readers(const model::Touch& touch) const {
  const model::Fork& at = fork(touch);
  const auto [known, is_new] = readers_.try_emplace(&at);
  if (is_new) {
    for (const model::Held& one : at.held) {
      Readers& readers = known->second[model_.locks[one.lock].address];
      readers.has_forking_thread = readers.has_forking_thread || one.by_forking_thread;
      if (!one.by_forking_thread) ++readers.others;
    }
  }
  const model::Held& of_touch = at.held[*touch.held];
  const Readers readers = known->second[model_.locks[of_touch.lock].address];
  if (readers.has_forking_thread) return true;
  const model::Wait* const seen = find_wait(touch.process, touch.tid);
  return seen != nullptr && seen->object == model_.locks[of_touch.lock].address && seen->readers > readers.others;
}

// True if the holder may be only a copy of the thread that took the lock. The first thread of a forked process is a
// copy of a thread of its parent, and that thread may have taken the lock before this earlier fork. If the parent had
// only one thread, the trace has no record of the earlier fork. So this function assumes that there was an earlier fork
// if the parent runs the same program.
bool Evidence::may_be_copied_holder(const model::Fork& at, const model::Held& held) const {
  const model::Process& forker = process(at.process);
  if (held.by_forking_thread || model_.threads[held.holder].tid != forker.pid || forker.has_execed) return false;
  return std::ranges::any_of(processes_with_pid(forker.ppid), [&](model::ProcessId id) {
    return process(id).host == forker.host && process(id).exe == forker.exe;
  });
}

// True if the thread that took the semaphore is possibly not the thread that should post it. There are four cases:
// - The thread that took the semaphore forked, so the child has a copy of that thread.
// - The thread that took the semaphore waits for it.
// - The process that forked never goes on, so no thread posts the semaphore there either.
// - A thread took the semaphore before an earlier fork. The later fork, to which this touch belongs, lost only a copy
//   of that thread.
bool Evidence::may_have_no_poster(const model::Touch& touch) const {
  const model::Fork& at = fork(touch);
  const model::Held& held = at.held[*touch.held];
  if (held.by_forking_thread || is_proven_dead(process(at.process)) || may_be_copied_holder(at, held)) return true;
  const std::uint64_t address = model_.locks[held.lock].address;
  const std::int32_t holder = model_.threads[held.holder].tid;
  const bool was_waiting = std::ranges::any_of(
      at.lost_waits, [&](const model::LostWait& wait) { return wait.thread == held.holder && wait.object == address; });
  return was_waiting || (holder != 0 && std::ranges::any_of(process(at.process).waits, [&](const model::Wait& wait) {
                           return wait.tid == holder && wait.object == address;
                         }));
}

Certainty Evidence::find_cause(const model::Touch& touch) const {
  clock_.check();
  const bool is_likely = has_unknown_holder(touch) || is_guess(touch);
  if (!touch.held) return is_likely ? Certainty::kLikely : Certainty::kProven;
  const model::Held& held = fork(touch).held[*touch.held];
  const model::LockKind kind = model_.locks[held.lock].kind;
  // A rwlock counts its readers and does not name them. A spinlock, and a semaphore whose count is zero, do not name a
  // thread either. So the holder may be a thread of the child, the thread that forked, or a thread that has ended. A
  // semaphore may have no holder at all: threads may use it as a signal, to notify each other.
  const bool is_signal = kind == model::LockKind::kSemaphore && !words::is_python_semaphore(touch.stack);
  const bool is_doubtful = is_signal || kind == model::LockKind::kRwlockRead || kind == model::LockKind::kSpinlock;
  if (fork(touch).is_inferred && (is_doubtful || held.may_be_own || held.may_have_been_free))
    return Certainty::kPossible;
  if (kind == model::LockKind::kRwlockRead && has_other_readers(touch)) return Certainty::kPossible;
  if (is_signal && may_have_no_poster(touch)) return Certainty::kPossible;
  // find_any_orphan() has left out the lock objects of Python that are known to serve as signals. Most of the others
  // protect data. But if no trace records the fork, it is not known which thread took the lock.
  const bool is_of_python = kind == model::LockKind::kSemaphore || kind == model::LockKind::kPython;
  const bool is_unnamed = fork(touch).is_inferred && is_of_python && model_.threads[held.holder].tid == 0;
  // `is_signal`: the shim saw a thread take the semaphore, and the fork lost that thread. But the semaphore may still
  // serve as a signal. `is_supposed`: only the thread id of the lock's owner is known, and a thread of the supposed
  // parent has this id. The supposed parent is the process that a core names as the parent. It may only have adopted
  // the child, because the real parent may have ended before the core was made.
  const bool is_supposed =
      fork(touch).is_parent_supposed && !held.by_forking_thread && model_.threads[held.holder].tid != 0;
  return is_likely || is_signal || is_unnamed || is_supposed ? Certainty::kLikely : Certainty::kProven;
}

ForkSite Evidence::fork_site(const model::Fork& fork) const {
  ForkSite site;
  site.pid = process(fork.process).pid;
  site.child = fork.child ? process(*fork.child).pid : 0;
  site.stack = fork.stack;
  return site;
}

Holder Evidence::holder(const model::Thread& thread) const {
  Holder holder;
  holder.pid = process(thread.process).pid;
  holder.tid = thread.tid;
  holder.name = thread.name;
  holder.library = thread.start_library;
  holder.start_routine = thread.start_routine;
  holder.owner = model::info_of(thread.owner).key;
  return holder;
}

Finding Evidence::begin_finding(const char* slug, const model::Touch& touch) const {
  clock_.check();
  Finding finding;
  finding.rule = slug;
  finding.process = touch.process;
  finding.processes = {touch.process};
  finding.tid = touch.tid;
  const model::Wait* const seen = find_wait(touch.process, touch.tid);
  finding.thread_name = thread_name(model_, touch, seen);
  finding.stack = touch.stack;
  const bool is_open = !touch.returned && !touch.cured && touch.action == model::TouchAction::kNone;
  // If a call has not returned, the finding shows the place where its thread was seen. This place is inside of the
  // call. But if the call started an OpenMP parallel region, the finding shows the place where the region began,
  // because the thread may be deep in the region's own code.
  const auto is_of_python = [](const model::Frame& frame) { return frame.python; };
  const bool may_be_inside = touch.kind != model::TouchKind::kParallel ||
                             (seen != nullptr && std::ranges::any_of(seen->stack.frames, is_of_python));
  if (is_open && may_be_inside && seen != nullptr && seen->stack.known() && !seen->stack.cut)
    finding.stack = seen->stack;
  finding.fork = fork_site(fork(touch));
  return finding;
}

Finding Evidence::begin_finding(const char* slug, const model::Fork& fork) const {
  clock_.check();
  const model::Process& child = process(*fork.child);
  Finding finding;
  finding.rule = slug;
  finding.process = *fork.child;
  finding.processes = {*fork.child};
  finding.tid = child.waits.empty() ? child.pid : child.waits.front().tid;
  if (!child.waits.empty()) finding.thread_name = child.waits.front().name;
  if (!child.waits.empty()) finding.stack = child.waits.front().stack;
  if (child.python) {
    const std::uint64_t own = model_.threads[fork.forking_thread].pointer;
    for (const model::PythonThread& thread : model_.python[*child.python]) {
      if (own != 0 && thread.pointer == own) finding.stack = thread.stack;
    }
  }
  finding.fork = fork_site(fork);
  return finding;
}

Finding Evidence::begin_finding(const char* slug, model::ProcessId id, const model::Wait& wait) {
  Finding finding;
  finding.rule = slug;
  finding.process = id;
  finding.processes = {id};
  finding.tid = wait.tid;
  finding.thread_name = wait.name;
  finding.stack = wait.stack;
  return finding;
}

std::string_view hangs(const model::Process& process) { return has_ended(process) ? "hung" : "hangs"; }

namespace {

// The proof of a hang has one exception: this process waits for a second process, and a signal ends the second process.
// Then the wait ends, too. This process may wait until the second process exits, uses its end of a pipe or socket, or
// releases a file lock. For example, the second process may have called alarm() without a handler for SIGALRM. /proc
// does not show this alarm. Returns words that name the second processes; "" if there are none.
std::string describe_outside_help(const model::Process& process) {
  std::set<std::int32_t> others;
  for (const model::Wait& wait : process.waits) {
    for (const model::Waker& waker : wait.wakers) {
      const bool ends_by_exit =
          waker.via == "wait4" || waker.via == "pipe" || waker.via == "socket" || waker.via == "flock";
      if (ends_by_exit && waker.pid > 0 && waker.pid != process.pid) others.insert(waker.pid);
    }
  }
  if (others.empty()) return {};
  if (others.size() == 1) return fmt::format(", unless a signal ends process {}", *others.begin());
  const std::size_t named = std::min(others.size(), kMostNamedProcesses);
  const auto end = std::next(others.begin(), static_cast<std::ptrdiff_t>(named));
  const std::string more = named < others.size() ? fmt::format(" and {} more", others.size() - named) : std::string();
  return fmt::format(", unless a signal ends one of the processes that it waits for: {}{}",
                     fmt::join(others.begin(), end, ", "), more);
}

std::string tell_liveness(const model::Process& process) {
  const std::string since = process.stuck_for_ms > 0 ? fmt::format("For {} ", words::duration(process.stuck_for_ms))
                            : process.is_core        ? "In the core, "
                                                     : "Seen from outside, ";
  switch (process.liveness) {
    case Liveness::kDead:
      return since + describe_waits(process) +
             ", and no thread of any process can wake it: this proves that the process never goes on" +
             describe_outside_help(process) + ".";
    case Liveness::kDeadButForSignal:
      return since + describe_waits(process) + ": no thread of any process can wake it, only " +
             words::ways_out(process) + " could.";
    case Liveness::kSpinning:
      if (process.is_core) {
        return since + "it runs inside of this call, which only another thread could end, and it has no other thread.";
      }
      return since + "it has run without a pause and has not left this call: it spins for an event that never happens.";
    case Liveness::kStalled: return since + "this call has not returned. It may still return.";
    default: break;
  }
  return {};
}

}  // namespace

const std::string& Evidence::describe_liveness(const model::Process& process) const {
  clock_.check();
  const auto [known, is_new] = liveness_.try_emplace(&process);
  if (is_new) known->second = tell_liveness(process);
  return known->second;
}

std::span<const Evidence::PlaceInRing> Evidence::places_in_rings(model::ProcessId id, std::int32_t tid) const {
  clock_.check();
  const auto found = places_in_rings_.find({id, tid});
  return found == places_in_rings_.end() ? std::span<const PlaceInRing>() : found->second;
}

const model::Wait* Evidence::find_wait(model::ProcessId id, std::int32_t tid) const {
  clock_.check();
  const auto found = waits_.find({id, tid});
  return found == waits_.end() ? nullptr : found->second;
}

std::string describe_end(const model::Process& process) {
  if (!process.exit_status) return {};
  const int status = *process.exit_status;
  if (WIFSIGNALED(status)) {
    if (process.killed_by_run && WTERMSIG(status) == SIGKILL) return "forksight ended it.";
    const char* const name = ::sigabbrev_np(WTERMSIG(status));
    return fmt::format("It was ended by signal {}{}.", WTERMSIG(status),
                       name == nullptr ? std::string() : fmt::format(" (SIG{})", name));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    return fmt::format("It exited with status {}.", WEXITSTATUS(status));
  return {};
}

void add_sentence(Finding& finding, std::string sentence) {
  if (!sentence.empty()) finding.chain.push_back(std::move(sentence));
}

}  // namespace forksight
