// Forks: who, with which threads, and whose child a process is.
#include <algorithm>

#include "collect/trace_reader.hpp"
#include "collect/trace_words.hpp"
#include "forksight/trace/ends.hpp"
#include "forksight/trace/vfork.hpp"

namespace forksight::collect {

using trace::RecordType;

namespace {

constexpr std::size_t kMaxPools = 64;  // of one fork; the shim keeps fewer

}  // namespace

model::ProcessId TraceReader::child_of(model::ForkId fork, std::int32_t pid, std::uint64_t time_ns) {
  model::Fork& about = model_.forks[fork];
  if (about.child) return *about.child;
  const std::int32_t parent_pid = model_.processes[about.process].pid;
  const auto known = by_pid_.find(pid);
  model::ProcessId child = 0;
  if (known != by_pid_.end() && !has_fork_[known->second] && known->second != about.process) {
    child = known->second;
    if (model_.processes[child].ppid == 0) model_.processes[child].ppid = parent_pid;
  } else {
    child = processes_.enter_child(file_.info(), pid, parent_pid, std::min(time_ns, about.time_ns));
    by_pid_[pid] = child;
    modules_.inherit(child, about.process);
  }
  if (!model_.processes[child].has_execed) {
    model_.processes[child].python_signal = model_.processes[about.process].python_signal;
    model_.processes[child].shim_start = model_.processes[about.process].shim_start;
  }
  has_fork_[child] = true;
  about.child = child;
  return child;
}

void TraceReader::read_fork(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::ForkRecord>();
  const model::ForkId id = model_.forks.size();
  model::Fork fork;
  fork.process = process_of(record);
  fork.ordinal = fixed.ordinal;
  fork.time_ns = record.time_ns;
  fork.prepare_ns = fixed.prepare_ns;
  fork.bypassed = (fixed.flags & trace::kForkBypassed) != 0;
  fork.by_clone = (fixed.flags & trace::kForkByClone) != 0;
  fork.by_syscall = (fixed.flags & trace::kForkBySyscall) != 0;
  if (const auto thread = find(fixed.forking_thread, RecordType::kThread)) {
    fork.forking_thread = thread->index;
  } else {
    model::Thread forking;
    forking.process = fork.process;
    forking.tid = record.tid;
    model_.threads.push_back(std::move(forking));
    fork.forking_thread = model_.threads.size() - 1;
  }
  const auto tail = record.tail<trace::ForkRecord>();
  for (std::size_t i = 0; i < fixed.thread_count; ++i) {
    const auto entry = TraceRecord::element_at<trace::ForkThread>(tail, i);
    const auto thread = find(entry.thread, RecordType::kThread);
    if (thread) {
      fork.lost_threads.push_back(thread->index);
      if (const auto kind = to_model(entry.wait_kind)) {
        fork.lost_waits.push_back({thread->index, *kind, entry.wait_object, {}});
      }
    } else {
      ++fork.unknown_threads;
    }
  }
  // Entries of /proc/self/task beyond what the shim knows of; the forking thread is one of them.
  if (fixed.tasks > fixed.thread_count + 1ULL) fork.unknown_threads += fixed.tasks - fixed.thread_count - 1;
  const auto runtimes = tail.subspan(fixed.thread_count * sizeof(trace::ForkThread));
  for (std::size_t i = 0; i < fixed.runtime_count; ++i) {
    const auto pool = find(TraceRecord::element_at<std::uint64_t>(runtimes, i), RecordType::kRuntime);
    if (!pool || fork.pools.size() >= kMaxPools) continue;
    if (std::ranges::find(fork.pools, pool->index) == fork.pools.end()) fork.pools.push_back(pool->index);
  }
  const model::ProcessId process = fork.process;
  model_.forks.push_back(std::move(fork));
  name_lost_waits(id);
  name_stack(
      process, fixed.stack, [id](model::Model & m) -> auto& { return m.forks[id].stack; });
  become(record, id);
}

void TraceReader::name_lost_waits(model::ForkId id) {
  if (!symbolize_) return;
  const model::Fork& fork = model_.forks[id];
  for (std::size_t i = 0; i < fork.lost_waits.size(); ++i) {
    const bool has_address = fork.lost_waits[i].kind != model::AwaitedKind::kThread &&
                             fork.lost_waits[i].kind != model::AwaitedKind::kSignals;
    if (!has_address) continue;
    deferred_.add_data(modules_.image_of(fork.process), fork.lost_waits[i].object,
                       [ id, i ](model::Model & m) -> auto& { return m.forks[id].lost_waits[i].name; }, {});
  }
}

void TraceReader::read_forked(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::ForkedRecord>();
  const auto fork = find(fixed.fork, RecordType::kFork);
  if (!fork) return;
  model_.forks[fork->index].total_ns = fixed.total_ns;
  if (fixed.child > 0) {
    child_of(fork->index, fixed.child, record.time_ns);
  } else {
    model_.forks[fork->index].error = fixed.error;
  }
}

void TraceReader::read_vfork_call(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::VforkCallRecord>();
  if (fixed.call != trace::VforkCall::kExit) return;
  const model::ProcessId process = process_of(record);
  const std::size_t id = model_.vfork_exits.size();
  model_.vfork_exits.push_back({process, fixed.child, record.tid, {}});
  name_stack(
      process, fixed.stack, [id](model::Model & m) -> auto& { return m.vfork_exits[id].stack; });
}

// Of a child whose fork was recorded, the last of that pid; of others nobody asks.
void TraceReader::read_child_end(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::ChildEndRecord>();
  const auto child = by_pid_.find(fixed.child);
  if (child == by_pid_.end() || !has_fork_[child->second] || model_.processes[child->second].ppid != record.pid) return;
  model_.processes[child->second].exit_status = fixed.status;
}

}  // namespace forksight::collect
