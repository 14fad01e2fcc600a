#include "collect/process_table.hpp"

namespace forksight::collect {

namespace {

bool may_be_parent(std::int32_t one, std::int32_t other) { return one == 0 || other == 0 || one == other; }

}  // namespace

model::ProcessId ProcessTable::add(const TraceInfo& info, std::int32_t pid, std::int32_t ppid, const Entry& entry) {
  model::Process process;
  process.pid = pid;
  process.ppid = ppid;
  process.exe = info.exe;
  process.cmdline = info.cmdline;
  process.host = info.host;
  process.rank = info.rank;
  process.world_size = info.world_size;
  model_.processes.push_back(std::move(process));
  auto& same_pid = entries_[{info.host, pid}];
  same_pid.push_back(entry);
  same_pid.back().process = model_.processes.size() - 1;
  return same_pid.back().process;
}

model::ProcessId ProcessTable::enter_creator(const TraceInfo& info) {
  for (Entry& entry : entries_[{info.host, info.pid}]) {
    model::Process& known = model_.processes[entry.process];
    const bool is_same = entry.is_creator ? known.start_ticks == info.start_ticks
                                          : entry.seen_ns <= info.monotonic_ns && may_be_parent(known.ppid, info.ppid);
    if (!is_same) continue;
    // If this trace is from a later program of the process, its facts replace those of the earlier program.
    if (entry.seen_ns <= info.monotonic_ns) {
      known.exe = info.exe;
      known.cmdline = info.cmdline;
      known.python_signal = 0;
      known.shim_start = 0;
    }
    // A forked child writes to its parent's trace until the child calls exec. This child has a trace of its own, so it
    // has called exec.
    if (entry.is_child) known.has_execed = true;
    known.start_ticks = info.start_ticks;
    known.ppid = info.ppid;
    entry.is_creator = true;
    image_ns_[entry.process] = std::max(image_ns_[entry.process], info.monotonic_ns);
    return entry.process;
  }
  const model::ProcessId process = add(info, info.pid, info.ppid, {0, info.monotonic_ns, true, false});
  model_.processes[process].start_ticks = info.start_ticks;
  image_ns_[process] = info.monotonic_ns;
  return process;
}

model::ProcessId ProcessTable::enter_child(const TraceInfo& info, std::int32_t pid, std::int32_t pid_of_parent,
                                           std::uint64_t time_ns) {
  for (Entry& entry : entries_[{info.host, pid}]) {
    model::Process& known = model_.processes[entry.process];
    // If the child has called exec, the child's own trace may have entered the child already. That trace began later
    // than the fork.
    if (entry.is_child || entry.seen_ns < time_ns || !may_be_parent(known.ppid, pid_of_parent)) continue;
    entry.is_child = true;
    if (entry.is_creator) known.has_execed = true;
    return entry.process;
  }
  return add(info, pid, pid_of_parent, {0, time_ns, false, true});
}

void ProcessTable::end_earlier_images() const {
  const auto is_over = [&](model::ProcessId process, std::uint64_t time_ns) {
    const auto image = image_ns_.find(process);
    return image != image_ns_.end() && time_ns < image->second;
  };
  std::erase_if(model_.handler_runs,
                [&](const model::HandlerRun& run) { return is_over(run.process, run.since_ns); });
  for (model::Touch& touch : model_.touches) touch.returned = touch.returned || is_over(touch.process, touch.time_ns);
}

}  // namespace forksight::collect
