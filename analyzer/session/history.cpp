#include "session/history.hpp"

#include <fmt/core.h>
#include <sys/syscall.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "proc/proc_fs.hpp"
#include "proc/thread_sample.hpp"

namespace forksight {
namespace {

std::string time_of_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::string text(40, '\0');
  text.resize(std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S%z", &local));
  return text;
}

collect::LoggedProcess row_of(const watch::Member& member) {
  collect::LoggedProcess row;
  row.pid = member.key.pid;
  row.start_ticks = member.key.start_ticks;
  row.ppid = member.ppid;
  row.comm = member.comm;
  row.exe = member.exe;
  row.cmdline = member.cmdline;
  row.liveness = model::Liveness::kAwake;
  return row;
}

bool is_proved(model::Liveness liveness) {
  return liveness == model::Liveness::kDead || liveness == model::Liveness::kDeadButForSignal ||
         liveness == model::Liveness::kVictim;
}

// True if the whole process is stuck.
bool is_stuck(const collect::LoggedProcess& row) {
  return is_proved(row.liveness) || row.liveness == model::Liveness::kSpinning ||
         row.liveness == model::Liveness::kStalled;
}

// True if the whole process or some threads of it are stuck.
bool has_stuck(const collect::LoggedProcess& row) {
  return is_stuck(row) || !row.waits.empty() || row.unheard_signals != 0;
}

// Returns the tids of the threads of the logged process that went on: those in `went_on`, and the stuck threads that
// are no longer in a futex call. Other threads of the process may still be stuck.
std::vector<std::int32_t> find_moved(const collect::LoggedProcess& row) {
  std::vector<std::int32_t> moved = row.went_on;
  for (const model::Wait& wait : row.waits) {
    bool refused = false;
    const auto thread = proc::sample_thread(row.pid, wait.tid, refused);
    const bool is_waiting = refused || (thread && thread->call.in_syscall && thread->call.number == SYS_futex);
    if (!is_waiting) moved.push_back(wait.tid);
  }
  return moved;
}

std::uint64_t milliseconds(watch::Clock::duration time) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

}  // namespace

RunHistory::RunHistory(std::vector<std::string> command) {
  base_.command = std::move(command);
  base_.started_at = time_of_now();
  base_.host = proc::host_name();
}

std::vector<proc::ProcessKey> RunHistory::note(const watch::Supervisor& supervisor,
                                               const std::map<proc::ProcessKey, watch::Verdict>& stuck,
                                               watch::Clock::time_point now) {
  std::vector<proc::ProcessKey> going_on = withdraw(supervisor, stuck, now);
  ended_.look();
  for (const auto& [key, verdict] : stuck) {
    const bool is_new = !kept_.contains(key) || kept_.at(key).liveness == model::Liveness::kAwake;
    collect::LoggedProcess& row = kept_[key];
    const auto shim_start = is_new ? proc::find_shim(key.pid) : row.shim_start;
    const auto member = supervisor.tree().living().find(key.pid);
    if (member != supervisor.tree().living().end() && member->second.key == key) row = row_of(member->second);
    row.liveness = verdict.liveness;
    // True if the process goes on, and only some of its threads are stuck.
    const bool goes_on = verdict.liveness == model::Liveness::kAwake;
    const auto age = goes_on ? watch::Clock::duration::zero() : now - verdict.since;
    row.stuck_for_ms = milliseconds(age);
    row.waits = verdict.waits;
    row.ways_out = verdict.ways_out;
    row.may_be_timed_out = verdict.may_be_timed_out;
    row.unheard_signals = verdict.unheard_signals;
    row.unheard_for_ms = verdict.unheard_signals == 0 ? 0 : milliseconds(now - verdict.unheard_since);
    row.waits_via = verdict.waits_for ? verdict.via : "";
    row.waits_for_pid = verdict.waits_for ? verdict.waits_for->pid : 0;
    row.waits_for_start_ticks = verdict.waits_for ? verdict.waits_for->start_ticks : 0;
    row.shim_start = shim_start;
    if (is_new && verdict.liveness != model::Liveness::kVictim && row.shim_start == 0U) {
      add_limit(fmt::format("process {} ({}) runs without the shim: what it did before it hung is not known", key.pid,
                            row.comm));
    }
  }
  return going_on;
}

// Withdraws the hangs of processes that are no longer stuck, and returns these processes:
//  - A hang that was not proven is withdrawn at once. The hang of a spinning or stalled process is never proven. A hang
//    of only some threads of a process is also withdrawn at once, because another thread may cancel these threads.
//  - If the hang was proven, the proof may fail for a moment, for example because a debugger looks at the process. So
//    the hang is withdrawn only after the proof has failed for some time.
//  - The hang of a process that is ending is not withdrawn.
//  - The hang of a victim is not withdrawn: a victim may go on because somebody ended the process that it waited for.
std::vector<proc::ProcessKey> RunHistory::withdraw(const watch::Supervisor& supervisor,
                                                   const std::map<proc::ProcessKey, watch::Verdict>& stuck,
                                                   watch::Clock::time_point now) {
  constexpr std::chrono::seconds kAwakeFor{1};
  constexpr std::chrono::seconds kUnprovenFor{15};
  std::vector<proc::ProcessKey> going_on;
  for (auto& [key, row] : kept_) {
    const auto member = supervisor.tree().living().find(key.pid);
    const bool lives = member != supervisor.tree().living().end() && member->second.key == key;
    if (row.liveness == model::Liveness::kVictim || stuck.contains(key) || !lives || proc::is_ending(key)) {
      missed_.erase(key);
      continue;
    }
    // A process that is stopped (SIGSTOP, a debugger) does not go on.
    if (member->second.state == 'T' || member->second.state == 't') {
      missed_.erase(key);
      continue;
    }
    const auto since = missed_.try_emplace(key, now).first->second;
    const auto longest = supervisor.was_awake(key) ? kAwakeFor : kUnprovenFor;
    if (is_proved(row.liveness) && now - since < longest) continue;
    if (forksight::has_stuck(row)) going_on.push_back(key);
    looks_.erase(key);
    std::vector<std::int32_t> went_on = find_moved(row);
    row = row_of(member->second);
    row.went_on = std::move(went_on);
    missed_.erase(key);
  }
  return going_on;
}

bool RunHistory::has_stuck() const {
  return std::ranges::any_of(kept_, [](const auto& entry) { return forksight::has_stuck(entry.second); });
}

void RunHistory::note_look(const model::Model& seen) {
  for (const model::Process& process : seen.processes) {
    if (!process.waits.empty())
      looks_[{process.pid, process.start_ticks}] = {process.waits, process.never_had_other_threads};
  }
}

void RunHistory::add_look(const proc::ProcessKey& key, collect::LoggedProcess& row) const {
  const auto look = looks_.find(key);
  if (look == looks_.end()) return;
  row.never_had_other_threads = look->second.never_had_other_threads;
  // The thread of a spinning or stalled process was in the same call at both looks. So its two waits belong together
  // even if their kinds differ: a spinning thread may be running, ready to run, or stopped by the examination.
  const bool is_in_that_call = row.liveness == model::Liveness::kSpinning || row.liveness == model::Liveness::kStalled;
  for (model::Wait& wait : row.waits) {
    const auto is_it = [&](const model::Wait& one) {
      if (one.tid != wait.tid) return false;
      return is_in_that_call || (one.kind == wait.kind && one.object == wait.object && one.fd == wait.fd);
    };
    const auto seen = std::ranges::find_if(look->second.waits, is_it);
    if (seen == look->second.waits.end()) continue;  // the thread waits for something else now
    const bool is_stuck = wait.is_stuck;
    const bool may_be_cancelled = wait.may_be_cancelled || seen->may_be_cancelled;
    // On a busy machine the examination may have proved less than the supervisor. Then the proof still counts.
    const bool has_proved = wait.wakers_known && !seen->wakers_known;
    std::vector<model::Waker> wakers = has_proved ? std::move(wait.wakers) : seen->wakers;
    wait = *seen;
    wait.wakers = std::move(wakers);
    wait.wakers_known = wait.wakers_known || has_proved;
    wait.is_stuck = is_stuck;
    wait.may_be_cancelled = may_be_cancelled;
  }
}

void RunHistory::note_command(const watch::Member& member) { kept_[member.key] = row_of(member); }

bool RunHistory::note_end(const proc::ProcessKey& key, int status, bool is_by_itself) {
  collect::LoggedProcess& row = kept_[key];
  row.pid = key.pid;
  row.start_ticks = key.start_ticks;
  row.exit_status = status;
  const bool goes_on = is_by_itself && is_stuck(row) && row.liveness != model::Liveness::kVictim;
  const bool was_stuck = row.stuck_for_ms != 0 || !row.waits.empty();
  if (was_stuck && !goes_on) return false;
  row.liveness = model::Liveness::kEnded;
  row.stuck_for_ms = 0;
  row.waits.clear();
  row.ways_out.clear();
  row.may_be_timed_out = false;
  return goes_on;
}

void RunHistory::note_kill(const proc::ProcessKey& key) {
  const auto row = kept_.find(key);
  if (row != kept_.end()) row->second.killed_by_run = true;
}

void RunHistory::add_limit(const std::string& sentence) {
  if (std::find(base_.limits.begin(), base_.limits.end(), sentence) == base_.limits.end())
    base_.limits.push_back(sentence);
}

collect::RunLog RunHistory::log(const watch::Supervisor& supervisor) const {
  collect::RunLog log = base_;
  for (std::string& limit : supervisor.limits([](std::int32_t) { return true; }))
    log.limits.push_back(std::move(limit));
  log.ends = ended_.ends();
  for (const auto& [key, row] : kept_) add_look(key, log.processes.emplace_back(row));
  for (const auto& [pid, member] : supervisor.tree().living()) {
    if (!kept_.contains(member.key) && !proc::has_ended(pid)) log.processes.push_back(row_of(member));
  }
  // If the kernel does not let forksight look at a process, forksight does not know whether that process is awake.
  for (const auto& [key, program] : supervisor.unreadable()) {
    const auto is_it = [&](const collect::LoggedProcess& row) {
      return row.pid == key.pid && row.start_ticks == key.start_ticks;
    };
    auto row = std::ranges::find_if(log.processes, is_it);
    if (row == log.processes.end()) {
      row = log.processes.emplace(log.processes.end());
      row->pid = key.pid;
      row->start_ticks = key.start_ticks;
    }
    row->is_unreadable = true;
    if (row->liveness == model::Liveness::kAwake) row->liveness = model::Liveness::kUnknown;
  }
  return log;
}

}  // namespace forksight
