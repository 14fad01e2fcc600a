// A process hangs for ever by itself: each of its threads sleeps until another thread does something, and no thread is
// left that could do it. This rule reports the hangs that no other rule explains. These are waits for semaphores,
// condition variables, futures and locks of the program's own. The memory of such an object does not say who should
// have ended the wait. If processes wait for each other in shared memory, one finding is about all of them.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "diagnose/ended_threads.hpp"
#include "diagnose/futex_waits.hpp"
#include "diagnose/python.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"
#include "model/timerfd.hpp"

namespace forksight::rules {

namespace {

// the most waits that a finding describes; waits at the same place count as one wait
constexpr std::size_t kMostTold = 8;

struct Sleeper {
  model::ProcessId process = 0;
  const model::Wait* wait = nullptr;
};
using Sleepers = std::vector<Sleeper>;

// True if it is known which thread should end the wait. That thread waits, too. So this wait is a symptom and not the
// cause.
bool has_owner(const model::Wait& wait) { return wait.owner != 0 || wait.use == model::FutexUse::kJoin; }

// True for a futex wait if it is not known which thread should end the wait, but the place of the wait is known.
// Without the place, the finding could say nothing about the wait. `run` then examines the process again.
bool is_open_wait(const Sleeper& sleeper) {
  const model::Wait& wait = *sleeper.wait;
  return wait.kind == model::WaitKind::kFutex && !has_owner(wait) && wait.stack.known();
}

bool is_future(const model::Wait& wait) {
  return futex_waits::find_purpose(wait.stack).what.find("future") != std::string::npos;
}

bool is_barrier(const model::Wait& wait) {
  const std::string what = futex_waits::find_purpose(wait.stack).what;
  return what.find("barrier_wait()") != std::string::npos || what.find("barrier::wait()") != std::string::npos;
}

// True if all threads that wait at a barrier wait at the same one. Two processes may map a shared barrier at different
// addresses, which are equal modulo the size of a page.
bool are_at_one_barrier(const Sleepers& sleepers) {
  constexpr std::uint64_t kInPage = 4095;
  const Sleeper* first = nullptr;
  return std::ranges::all_of(sleepers, [&](const Sleeper& sleeper) {
    if (!is_barrier(*sleeper.wait)) return true;
    if (first == nullptr) first = &sleeper;
    const bool is_same_process = sleeper.process == first->process;
    const std::uint64_t mask = is_same_process ? ~0ULL : kInPage;
    return (sleeper.wait->object & mask) == (first->wait->object & mask);
  });
}

// True if the thread waits inside of a task that belongs to a promise: std::packaged_task, std::async.
bool is_in_task(const model::Wait& wait) {
  return std::ranges::any_of(wait.stack.frames, [](const model::Frame& frame) {
    return frame.function.find("packaged_task<") != std::string::npos ||
           frame.function.find("_Task_state<") != std::string::npos ||
           frame.function.find("_Async_state_impl<") != std::string::npos;
  });
}

// True if a worker of a Python ThreadPoolExecutor waits for the result of another task.
bool is_in_python_task(const model::Wait& wait) {
  const auto is_in = [](const model::Frame& frame, std::string_view file, std::string_view function) {
    return frame.python && frame.file.ends_with(file) && frame.function.ends_with(function);
  };
  const auto& frames = wait.stack.frames;
  const auto result = std::ranges::find_if(
      frames, [&](const model::Frame& frame) { return is_in(frame, "/concurrent/futures/_base.py", "result"); });
  return std::any_of(result, frames.end(), [&](const model::Frame& frame) {
    return is_in(frame, "/concurrent/futures/thread.py", "_worker");
  });
}

// True if the thread waits inside of a task for the result of another task.
bool is_task_that_waits(const model::Wait& wait) {
  return (is_future(wait) && is_in_task(wait)) || is_in_python_task(wait);
}

// What the waits of a finding have in common. This selects the words of the finding.
enum class WaitPattern { kPlain, kBarrier, kTask, kPromise };

WaitPattern find_pattern(const Sleepers& sleepers) {
  const auto has = [&](auto is_it) {
    return std::ranges::any_of(sleepers, [&](const Sleeper& sleeper) { return is_it(*sleeper.wait); });
  };
  // If a thread waits for a known thread or process, this wait does not change the pattern.
  const auto all = [&](auto is_it) {
    return std::ranges::all_of(
        sleepers, [&](const Sleeper& sleeper) { return is_it(*sleeper.wait) || has_owner(*sleeper.wait); });
  };
  if (has(is_barrier) && all(is_barrier) && are_at_one_barrier(sleepers)) return WaitPattern::kBarrier;
  if (has(is_task_that_waits)) return WaitPattern::kTask;
  if (has(is_future) && all(is_future)) return WaitPattern::kPromise;
  return WaitPattern::kPlain;
}

// True if the fork that made the process, or a fork that made one of its ancestors, lost threads. One of these lost
// threads may be the thread that should have ended the wait.
bool has_lost_threads(const Evidence& evidence, model::ProcessId id) {
  std::unordered_set<model::ProcessId> seen;
  while (seen.insert(id).second) {
    const auto made_by = evidence.forks_that_made(id);
    if (made_by.empty()) return false;
    const model::Fork& fork = evidence.model().forks[made_by.front()];
    if (!fork.lost_threads.empty() || fork.unknown_threads > 0) return true;
    id = fork.process;
  }
  return false;
}

std::unordered_set<model::ProcessId> find_explained(const std::vector<Finding>& findings) {
  std::unordered_set<model::ProcessId> explained;
  for (const Finding& finding : findings) {
    if (finding.outcome == Outcome::kCured) continue;
    explained.insert(finding.processes.begin(), finding.processes.end());
  }
  return explained;
}

bool is_blocked_forever(const model::Process& process) {
  return is_proven_dead(process) && !process.is_core && !process.has_gaps && !process.waits.empty() &&
         std::ranges::all_of(process.waits,
                             [](const model::Wait& wait) { return wait.is_stuck || has_thread_ended(wait); });
}

// Knows which process waits for which other processes. A search looks at each edge only once, because thousands of
// processes may all wait for each other.
class WaitsForProcesses {
 public:
  explicit WaitsForProcesses(const model::Model& model) : targets_(model.processes.size()) {
    std::map<std::pair<std::string_view, std::int32_t>, std::vector<model::ProcessId>> ids;  // by host and pid
    for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
      ids[{model.processes[id].host, model.processes[id].pid}].push_back(id);
    }
    for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
      const model::Process& process = model.processes[id];
      std::unordered_set<std::int32_t> known;
      for (const model::Wait& wait : process.waits) {
        for (const model::Waker& waker : wait.wakers) {
          if (waker.pid == process.pid || !model::is_waited_for(waker.via) || !known.insert(waker.pid).second) continue;
          const auto named = ids.find({process.host, waker.pid});
          if (named == ids.end()) continue;
          targets_[id].insert(targets_[id].end(), named->second.begin(), named->second.end());
        }
      }
    }
  }

  // Returns the process itself, and all processes for which it waits, directly or through others. The search does not
  // visit processes for which `is_left_out` is true.
  template <class IsLeftOut>
  std::vector<model::ProcessId> find_bound(model::ProcessId first, const IsLeftOut& is_left_out) const {
    std::vector<model::ProcessId> bound{first};
    std::vector<bool> seen(targets_.size());
    seen[first] = true;
    for (std::size_t at = 0; at < bound.size(); ++at) {
      for (const model::ProcessId id : targets_[bound[at]]) {
        if (seen[id] || is_left_out(id)) continue;
        seen[id] = true;
        bound.push_back(id);
      }
    }
    return bound;
  }

  // Marks the process, and all processes that wait for it, directly or through others.
  void mark_waiters(model::ProcessId first, std::vector<bool>& marked) {
    if (waiters_.empty()) find_waiters();
    std::vector<model::ProcessId> open{first};
    while (!open.empty()) {
      const model::ProcessId id = open.back();
      open.pop_back();
      if (marked[id]) continue;
      marked[id] = true;
      open.insert(open.end(), waiters_[id].begin(), waiters_[id].end());
    }
  }

 private:
  void find_waiters() {
    waiters_.resize(targets_.size());
    for (model::ProcessId id = 0; id < targets_.size(); ++id) {
      for (const model::ProcessId target : targets_[id]) waiters_[target].push_back(id);
    }
  }

  std::vector<std::vector<model::ProcessId>> targets_;  // by process
  std::vector<std::vector<model::ProcessId>> waiters_;  // by process
};

// Sets the certainty and the outcome. If a signal handler could end a wait, the hang is not proven. If this handler
// counts as a way out, the program may be meant to sleep until the handler runs. Python's own handler of SIGINT does
// not count as a way out. It exists for Ctrl-C, and a program that only Ctrl-C can wake was not meant to go on by
// itself.
void set_certainty(const Evidence& evidence, const std::vector<model::ProcessId>& bound, Finding& finding) {
  const auto is_beyond = [&](model::ProcessId id) { return no_signal_can_wake(evidence.process(id)); };
  finding.harm = std::ranges::all_of(bound, is_beyond) ? Certainty::kProven : Certainty::kLikely;
  finding.cause = Certainty::kUnknown;  // it is not known which thread should have acted first
  finding.outcome = Outcome::kHang;
  if (std::ranges::any_of(bound, [&](model::ProcessId id) { return has_way_out(evidence.process(id)); }))
    set_may_be_intended(finding);
}

Sleepers list_sleepers(const model::Model& model, const std::vector<model::ProcessId>& bound) {
  Sleepers all;
  for (const model::ProcessId id : bound) {
    for (const model::Wait& wait : model.processes[id].waits) {
      if (!has_thread_ended(wait)) all.push_back({id, &wait});
    }
  }
  return all;
}

// True if the thread waits on a futex word of libstdc++'s pool of futex words. This pool serves many waits, so its name
// says nothing about this wait.
bool is_private_name(const model::Wait& wait) {
  return wait.object_name.find("__waiter_pool_base") != std::string::npos;
}

std::string what(const model::Wait& wait) {
  if (wait.kind != model::WaitKind::kFutex) {
    constexpr std::string_view kIn = "in ";  // `call` is, for example, "in wait4"
    return wait.call.starts_with(kIn) ? wait.call.substr(kIn.size()) : "a system call";
  }
  if (const std::string called = python::operation(wait.stack); !called.empty()) return called + "()";
  if (words::is_python_lock(wait.stack)) return "a lock of Python";
  if (wait.use == model::FutexUse::kJoin) return "pthread_join()";
  if (has_owner(wait)) return "the wait for " + cycles::object(wait);
  return futex_waits::find_purpose(wait.stack).what;
}

std::string who(const Evidence& evidence, const Sleeper& sleeper, bool names_process) {
  return cycles::thread(evidence, {sleeper.process, sleeper.wait, nullptr}, names_process);
}

std::string tell(const Evidence& evidence, const Sleeper& sleeper, std::size_t others, bool names_process) {
  const model::Wait& wait = *sleeper.wait;
  const std::string where = python::place(wait.stack);
  const bool has_no_name = wait.object_name.empty() || has_owner(wait) || is_private_name(wait);
  const std::string on = has_no_name ? "" : fmt::format(" on {}", wait.object_name);
  const std::string more =
      others == 0 ? "" : fmt::format(", as {}", others == 1 ? "1 more does" : fmt::format("{} more do", others));
  std::string for_whom;
  if (wait.owner != 0) {
    for_whom = wait.use == model::FutexUse::kJoin ? fmt::format(" for the end of thread {}", wait.owner)
                                                  : fmt::format(", which thread {} holds", wait.owner);
  } else if (wait.kind == model::WaitKind::kWaitChild) {
    for_whom = wait.target_pid > 0 ? fmt::format(" for the end of process {}", wait.target_pid)
                                   : std::string(" for the end of a child");
  } else if (wait.kind == model::WaitKind::kFutex && !words::is_python_lock(wait.stack)) {
    for_whom = fmt::format(" for {}", futex_waits::find_purpose(wait.stack).other_side);
  }
  std::string thread = who(evidence, sleeper, names_process);
  thread.front() = thread.front() == 't' ? 'T' : 'P';
  const std::string in = wait.kind == model::WaitKind::kWaitChild ? std::string() : " in " + what(wait);
  return fmt::format("{} waits{}{}{}{}{}.", thread, in, on, where.empty() ? "" : " at " + where, for_whom, more);
}

void tell_all(const Evidence& evidence, const Sleepers& sleepers, bool names_process, Finding& finding) {
  std::vector<std::pair<const Sleeper*, std::size_t>> told;  // with the number of other waits at the same place
  std::unordered_map<std::string, std::size_t> index;
  for (const Sleeper& sleeper : sleepers) {
    const model::Wait& wait = *sleeper.wait;
    const std::string place = words::place(wait.stack);
    const std::string on = wait.object_name.empty() ? fmt::format("{:#x}", wait.object) : wait.object_name;
    const auto [at, is_new] = index.try_emplace(place + on, told.size());
    if (is_new || place.empty() || has_owner(wait)) {
      told.emplace_back(&sleeper, 0);
    } else {
      ++told[at->second].second;
    }
  }
  for (std::size_t i = 0; i < told.size() && i < kMostTold; ++i) {
    add_sentence(finding, tell(evidence, *told[i].first, told[i].second, names_process));
  }
  if (told.size() > kMostTold)
    add_sentence(finding,
                 fmt::format("{} more wait, too.", words::count(told.size() - kMostTold, "thread", "threads")));
}

void describe_pattern(WaitPattern pattern, const Evidence& evidence, const Sleepers& sleepers, Finding& finding) {
  if (pattern == WaitPattern::kBarrier)
    add_sentence(finding,
                 "A barrier opens when as many threads have arrived as it was made for. This one was made for more "
                 "threads than these, and no other thread is left that could arrive: a thread was not started, has "
                 "ended, or had arrived before.");
  for (const Sleeper& sleeper : sleepers) {
    const model::Wait& wait = *sleeper.wait;
    if (pattern == WaitPattern::kTask && is_task_that_waits(wait)) {
      add_sentence(
          finding,
          fmt::format("Thread {} of {} is in the middle of a task ({}) and waits for the result of "
                      "another. If these threads are the ones that should run that task, none is left to run it.",
                      wait.tid, evidence.name(sleeper.process),
                      is_in_python_task(wait) ? "ThreadPoolExecutor" : "std::packaged_task, std::async"));
    }
  }
  if (pattern == WaitPattern::kPromise)
    add_sentence(
        finding,
        "Nobody is left to set the promise: the thread that should have set it has ended without doing so, waits "
        "itself, or never existed. A promise that is destroyed unset reports this (broken_promise); this promise still "
        "exists.");
}

void add_fixes(WaitPattern pattern, const Sleepers& sleepers, Finding& finding) {
  const auto has = [&](std::string_view part) {
    return std::ranges::any_of(
        sleepers, [&](const Sleeper& sleeper) { return what(*sleeper.wait).find(part) != std::string::npos; });
  };
  if (has("cond")) {
    finding.fixes.push_back(
        {"Wait for a condition variable in a loop that checks the state itself, and set that state under the same "
         "mutex: a signal that comes before the wait is lost.",
         true});
  }
  if (has("sem_wait") || has("semaphore")) {
    finding.fixes.push_back(
        {"Semaphores that serve as locks: take them in one order everywhere; better, use mutexes, which record their "
         "owner."});
  }
  if (pattern == WaitPattern::kTask) {
    finding.fixes.push_back(
        {"A task must not wait for a task of its own pool: run it itself, or hand its future on.", true});
  }
  if (pattern == WaitPattern::kPromise) {
    finding.fixes.push_back(
        {"Set a value or an exception on each way out of the code that should set it: set_exception() in a catch, or a "
         "std::packaged_task, which does so by itself.",
         true});
  }
  if (pattern == WaitPattern::kBarrier) {
    finding.fixes.push_back(
        {"Make the barrier for as many threads as arrive at it: count the threads that were started, and let a thread "
         "that gives up arrive all the same (std::barrier::arrive_and_drop()).",
         true});
  }
  finding.fixes.push_back(
      {"Release what others need before waiting for them. Wait with a time limit, and treat its end as an error."});
}

std::string summarise(const Evidence& evidence, const std::vector<model::ProcessId>& bound, const Sleepers& sleepers,
                      const Sleeper& first, bool is_beyond, WaitPattern pattern) {
  const model::Process& process = evidence.process(bound.front());
  const std::string place = words::place(first.wait->stack);
  const std::string in = fmt::format("{}{}", what(*first.wait), place.empty() ? "" : fmt::format(" ({})", place));
  const bool is_past = has_ended(process);
  if (bound.size() > 1) {
    const char* const hang = is_past ? "hung" : "hang";
    return fmt::format("{} processes {}: each of their {} threads waits for another in shared memory, process {} in {}",
                       bound.size(), is_beyond ? hang : "sleep until a signal", sleepers.size(),
                       evidence.process(first.process).pid, in);
  }
  const std::string name = evidence.name(bound.front());
  const std::string_view state = is_beyond ? hangs(process)
                                 : is_past ? "slept until a signal"
                                           : "sleeps until a signal";
  if (pattern == WaitPattern::kBarrier) {
    const auto come = std::ranges::count_if(sleepers, [](const Sleeper& one) { return is_barrier(*one.wait); });
    return fmt::format("{} {} in {}: {} there, and no thread is left that could arrive next", name, state, in,
                       words::count(static_cast<std::size_t>(come), "thread is", "threads are"));
  }
  if (pattern == WaitPattern::kTask) {
    const auto at = std::ranges::find_if(sleepers, [](const Sleeper& one) { return is_task_that_waits(*one.wait); });
    return fmt::format("{} {}: {} waits inside of a task for the result of another{}, and no thread is left to run it",
                       name, state, who(evidence, *at, false), words::at(" at ", at->wait->stack));
  }
  if (pattern == WaitPattern::kPromise && sleepers.size() == 1)
    return fmt::format("{} {} in {}: it has no other thread that could set the promise", name, state, in);
  if (sleepers.size() == 1)
    return fmt::format("{} {} in {}: it has no other thread that could wake it", name, state, in);
  return fmt::format("{} {}: its {} threads all wait, and no thread is left to wake them: {} in {}", name, state,
                     sleepers.size(), who(evidence, first, false), in);
}

// If the waits of all threads record no owner, returns "they wait". Otherwise returns words such as "thread 17 waits".
std::string name_waiters_without_owner(const Evidence& evidence, const Sleepers& sleepers, bool names_process) {
  constexpr std::size_t kMostWaiters = 3;
  std::vector<std::string> names;
  for (const Sleeper& sleeper : sleepers) {
    if (sleeper.wait->kind == model::WaitKind::kFutex && !has_owner(*sleeper.wait))
      names.push_back(who(evidence, sleeper, names_process));
  }
  if (names.size() == sleepers.size()) return "they wait";
  if (names.size() > kMostWaiters) return fmt::format("{} of these threads wait", names.size());
  return fmt::format("{} {}", fmt::join(names, " and "), names.size() == 1 ? "waits" : "wait");
}

// True if the thread waits for the end of another thread of Python. All threads are stuck, so the other thread is the
// reason for this wait.
bool is_python_join(const model::Wait& wait) { return python::operation(wait.stack) == "threading.join"; }

// Returns how well the wait shows the cause: a lower number is better. -1: it is not an open wait. The best is a wait
// whose stack has a frame of the user's own code. For example, the main thread of Python waits in the standard library
// when a program ends. Joins come after the other waits. Among joins, the first thread of the process comes last,
// because a program rarely joins it.
int rank(const Evidence& evidence, const Sleeper& sleeper) {
  if (!is_open_wait(sleeper)) return -1;
  const auto is_own = [](const model::Frame& frame) { return words::whose(frame) == words::Whose::kUser; };
  if (std::ranges::none_of(sleeper.wait->stack.frames, is_own)) return 3;
  if (!is_python_join(*sleeper.wait)) return 0;
  return sleeper.wait->tid == evidence.process(sleeper.process).pid ? 2 : 1;
}

// Returns the wait that the first line of the finding names: the first one of the best rank.
Sleepers::const_iterator find_first_told(const Evidence& evidence, const Sleepers& sleepers) {
  auto best = sleepers.end();
  int lowest = 0;
  for (auto at = sleepers.begin(); at != sleepers.end(); ++at) {
    const int its = rank(evidence, *at);
    if (its < 0 || (best != sleepers.end() && its >= lowest)) continue;
    best = at;
    lowest = its;
  }
  return best;
}

Finding describe(const Evidence& evidence, const std::vector<model::ProcessId>& bound, const Sleepers& sleepers) {
  const auto first = find_first_told(evidence, sleepers);
  Finding finding = Evidence::begin_finding("deadlock", first->process, *first->wait);
  set_certainty(evidence, bound, finding);
  finding.processes = bound;
  finding.culprit.kind = CulpritKind::kThread;
  finding.culprit.name = sleepers.size() == 1 ? "its only thread" : fmt::format("{} threads", sleepers.size());
  finding.culprit.library = evidence.process(first->process).exe;
  const bool names_process = bound.size() > 1;
  const WaitPattern pattern = find_pattern(sleepers);
  finding.summary = summarise(evidence, bound, sleepers, *first, finding.outcome == Outcome::kHang, pattern);
  tell_all(evidence, sleepers, names_process, finding);
  add_sentence(finding, evidence.describe_liveness(evidence.process(first->process)));
  if (sleepers.size() == 1) {
    const bool has_lost = has_lost_threads(evidence, first->process);
    add_sentence(finding,
                 has_lost
                     ? "It is not known who should have woken it: a thread that a fork left behind, a thread that has "
                       "ended, a thread that woke it before the wait began, or nobody."
                     : "No thread is left that could wake it. The thread that should have done so has ended, woke it "
                       "before the wait began, or never existed. Or the program lets it wait until a signal ends it.");
  } else {
    add_sentence(finding,
                 fmt::format("What {} for records no owner, so forksight cannot say which thread should have acted "
                             "first.",
                             name_waiters_without_owner(evidence, sleepers, names_process)));
  }
  describe_pattern(pattern, evidence, sleepers, finding);
  add_fixes(pattern, sleepers, finding);
  return finding;
}

// Finds threads that read a timer that is not armed. Each thread that could arm the timer sleeps for ever, too.
void find_unarmed_timers(const Evidence& evidence, std::unordered_set<model::ProcessId>& settled,
                         FindingList& findings) {
  const model::Model& model = evidence.model();
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    const bool is_victim = process.liveness == model::Liveness::kVictim;
    if (!is_blocked_forever(process) || is_victim || settled.contains(id)) continue;
    const auto wait = std::ranges::find_if(process.waits, [](const model::Wait& one) {
      return one.is_stuck && one.path == model::kTimerfdName && one.stack.known();
    });
    if (wait == process.waits.end()) continue;
    settled.insert(id);
    Finding finding = Evidence::begin_finding("deadlock", id, *wait);
    set_certainty(evidence, {id}, finding);
    finding.culprit.kind = CulpritKind::kTimer;
    finding.culprit.name = fmt::format("the timerfd of descriptor {}", wait->fd);
    finding.culprit.library = process.exe;
    const bool is_beyond = finding.outcome == Outcome::kHang;
    finding.summary = fmt::format(
        "{} {}{}: it reads a timerfd that is not armed, and no task is left that could arm it", evidence.name(id),
        is_beyond ? hangs(process) : "sleeps until a signal", words::at(" at ", wait->stack));
    add_sentence(finding, fmt::format("Thread {} of {} reads descriptor {}{}, a timerfd.", wait->tid, evidence.name(id),
                                      wait->fd, words::at(" at ", wait->stack)));
    add_sentence(finding, "The timer is not armed: it has no time at which it expires.");
    add_sentence(finding, evidence.describe_liveness(process));
    add_sentence(finding, describe_end(process));
    finding.fixes.push_back(
        {"Arm the timer with timerfd_settime() before the read. An it_value of zero disarms it: give at least 1 ns."});
    findings.push_back(std::move(finding));
  }
}

}  // namespace

void deadlock(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  std::unordered_set<model::ProcessId> settled = find_explained(findings);
  find_unarmed_timers(evidence, settled, findings);
  WaitsForProcesses waits(model);
  // A process counts as open if it goes on or has a finding. A process that waits for an open process is open, too.
  std::vector<bool> is_open(model.processes.size());
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    if (!is_blocked_forever(model.processes[id]) || settled.contains(id)) waits.mark_waiters(id, is_open);
  }
  // If a process is done, neither this process nor any process for which it waits has an open wait.
  std::vector<bool> is_done(model.processes.size());
  const auto has_open_wait = [&](const std::vector<model::ProcessId>& bound) {
    return std::ranges::any_of(list_sleepers(model, bound), is_open_wait);
  };
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    if (is_open[id] || is_done[id]) continue;
    const auto unknown = waits.find_bound(id, [&](model::ProcessId other) { return is_done[other]; });
    if (!has_open_wait(unknown)) {
      for (const model::ProcessId one : unknown) is_done[one] = true;
      continue;
    }
    const auto bound = waits.find_bound(id, [](model::ProcessId) { return false; });
    for (const model::ProcessId one : bound) waits.mark_waiters(one, is_open);
    findings.push_back(describe(evidence, bound, list_sleepers(model, bound)));
  }
}

}  // namespace forksight::rules
