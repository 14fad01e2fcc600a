#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "collect/run_log.hpp"

namespace forksight::collect {
namespace {

bool is_same_host(const model::Process& process, const RunLog& log) {
  return process.host.empty() || log.host.empty() || process.host == log.host;
}

// Maps pids to processes. A run may have many thousands of processes. With this index, the time to merge its log grows
// only linearly.
using ByPid = std::multimap<std::int32_t, model::ProcessId>;

// Returns the process with this pid and start time. If there is none, returns a process with this pid, provided that
// its start time or `start_ticks` is not known.
std::optional<model::ProcessId> find_process(const model::Model& model, const ByPid& by_pid, const RunLog& log,
                                             std::int32_t pid, std::uint64_t start_ticks) {
  std::optional<model::ProcessId> found;
  const auto [begin, end] = by_pid.equal_range(pid);
  for (auto entry = begin; entry != end; ++entry) {
    const model::Process& process = model.processes[entry->second];
    if (!is_same_host(process, log)) continue;
    if (process.start_ticks == start_ticks) return entry->second;
    if (process.start_ticks == 0 || start_ticks == 0) found = entry->second;
  }
  return found;
}

// True if the process has called exec since its trace began. The log was written later than the trace. It then shows
// another program, or the shim at another address. Only the file names of programs are compared, because the paths
// differ after a chroot(). The trace may have only the beginning of a long path.
bool is_other_image(const model::Process& process, const LoggedProcess& logged) {
  const auto name_of = [](const std::string& path) { return std::string_view(path).substr(path.rfind('/') + 1); };
  const std::string_view traced = name_of(process.exe);
  const std::string_view seen = name_of(logged.exe);
  const bool is_cut = logged.exe.starts_with(process.exe);
  if (!seen.empty() && !is_cut && !traced.starts_with(seen) && !seen.starts_with(traced)) return true;
  return process.shim_start != 0 && logged.shim_start && *logged.shim_start != process.shim_start;
}

// Marks a touch as returned if its thread has gone on since. If a signal handler jumped out of the call, no record says
// that the call returned.
void end_calls(model::Model& model, model::ProcessId id, const LoggedProcess& logged) {
  if (logged.went_on.empty()) return;
  for (model::Touch& touch : model.touches) {
    const bool has_gone_on = touch.process == id && std::ranges::find(logged.went_on, touch.tid) != logged.went_on.end();
    if (has_gone_on) touch.returned = true;
  }
}

// Called for a process that has called exec. Removes the atfork handlers that were running in the old program, and
// marks the touches of the old program as returned.
void end_image(model::Model& model, model::ProcessId id) {
  std::erase_if(model.handler_runs, [&](const model::HandlerRun& run) { return run.process == id; });
  for (model::Touch& touch : model.touches) touch.returned = touch.returned || touch.process == id;
}

void fill(model::Process& process, LoggedProcess& logged, const RunLog& log) {
  process.has_execed = process.has_execed || is_other_image(process, logged);
  if (process.start_ticks == 0) process.start_ticks = logged.start_ticks;
  if (process.ppid == 0) process.ppid = logged.ppid;
  if (!logged.exe.empty()) process.exe = logged.exe;
  if (!logged.cmdline.empty()) process.cmdline = std::move(logged.cmdline);
  if (process.host.empty()) process.host = log.host;
  process.liveness = logged.liveness;
  process.stuck_for_ms = logged.stuck_for_ms;
  process.waits = std::move(logged.waits);
  process.waits_via = std::move(logged.waits_via);
  process.unheard_signals = logged.unheard_signals;
  process.unheard_for_ms = logged.unheard_for_ms;
  process.ways_out = std::move(logged.ways_out);
  process.may_be_timed_out = logged.may_be_timed_out;
  process.never_had_other_threads = logged.never_had_other_threads;
  process.killed_by_run = logged.killed_by_run;
  process.is_unreadable = logged.is_unreadable;
  if (logged.exit_status) process.exit_status = logged.exit_status;
}

}  // namespace

void merge_run_log(model::Model& model, RunLog log) {
  if (model.command.empty()) model.command = log.command;
  for (const std::string& limit : log.limits) {
    if (std::find(model.limits.begin(), model.limits.end(), limit) == model.limits.end()) model.limits.push_back(limit);
  }
  ByPid by_pid;
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) by_pid.emplace(model.processes[id].pid, id);
  for (LoggedProcess& logged : log.processes) {
    auto id = find_process(model, by_pid, log, logged.pid, logged.start_ticks);
    if (!id) {
      id = model.processes.size();
      model.processes.emplace_back().pid = logged.pid;
      by_pid.emplace(logged.pid, *id);
    }
    if (is_other_image(model.processes[*id], logged)) end_image(model, *id);
    fill(model.processes[*id], logged, log);
    end_calls(model, *id, logged);
  }
  for (const LoggedEnd& end : log.ends) {
    const auto id = find_process(model, by_pid, log, end.pid, end.start_ticks);
    if (id) model.processes[*id].seen_ended_ns = end.gone_ns;
  }
  for (const LoggedProcess& logged : log.processes) {
    if (logged.waits_for_pid == 0) continue;
    const auto id = find_process(model, by_pid, log, logged.pid, logged.start_ticks);
    const auto target = find_process(model, by_pid, log, logged.waits_for_pid, logged.waits_for_start_ticks);
    if (id) model.processes[*id].waits_for = target;
  }
}

}  // namespace forksight::collect
