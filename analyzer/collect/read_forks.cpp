#include "collect/read_forks.hpp"

#include <algorithm>

#include "collect/trace_words.hpp"
#include "forksight/trace/ends.hpp"
#include "forksight/trace/vfork.hpp"

namespace forksight::collect {

using trace::RecordType;

namespace {

constexpr std::size_t kMaxPools = 64;  // the pools of one fork; the shim records fewer

}  // namespace

void ForkReader::read_fork(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::ForkRecord>();
  const model::ForkId id = model_.forks.size();
  model::Fork fork;
  fork.process = trace_.process_of(record);
  fork.ordinal = fixed.ordinal;
  fork.time_ns = record.time_ns;
  fork.prepare_ns = fixed.prepare_ns;
  fork.bypassed = (fixed.flags & trace::kForkBypassed) != 0;
  fork.by_clone = (fixed.flags & trace::kForkByClone) != 0;
  fork.by_syscall = (fixed.flags & trace::kForkBySyscall) != 0;
  if (const auto thread = trace_.find(fixed.forking_thread, RecordType::kThread)) {
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
    const auto thread = trace_.find(entry.thread, RecordType::kThread);
    if (thread) {
      fork.lost_threads.push_back(thread->index);
      if (const auto kind = to_model(entry.wait_kind)) {
        fork.lost_waits.push_back({thread->index, *kind, entry.wait_object, {}});
      }
    } else {
      ++fork.unknown_threads;
    }
  }
  // `tasks` is the number of entries of /proc/self/task. `tasks` counts the forking thread, but `thread_count` does
  // not. If `tasks` shows further threads, the shim knows nothing about them.
  if (fixed.tasks > fixed.thread_count + 1ULL) fork.unknown_threads += fixed.tasks - fixed.thread_count - 1;
  const auto runtimes = tail.subspan(fixed.thread_count * sizeof(trace::ForkThread));
  for (std::size_t i = 0; i < fixed.runtime_count; ++i) {
    const auto pool = trace_.find(TraceRecord::element_at<std::uint64_t>(runtimes, i), RecordType::kRuntime);
    if (!pool || fork.pools.size() >= kMaxPools) continue;
    if (std::ranges::find(fork.pools, pool->index) == fork.pools.end()) fork.pools.push_back(pool->index);
  }
  const model::ProcessId process = fork.process;
  model_.forks.push_back(std::move(fork));
  name_lost_waits(id);
  trace_.name_stack(
      process, fixed.stack, [id](model::Model & m) -> auto& { return m.forks[id].stack; });
  trace_.bind(record, id);
}

void ForkReader::name_lost_waits(model::ForkId id) {
  if (!trace_.symbolizes()) return;
  const model::Fork& fork = model_.forks[id];
  for (std::size_t i = 0; i < fork.lost_waits.size(); ++i) {
    const bool has_address = fork.lost_waits[i].kind != model::AwaitedKind::kThread &&
                             fork.lost_waits[i].kind != model::AwaitedKind::kSignals;
    if (!has_address) continue;
    trace_.deferred().add_data(trace_.modules().image_of(fork.process), fork.lost_waits[i].object,
                               [ id, i ](model::Model & m) -> auto& { return m.forks[id].lost_waits[i].name; }, {});
  }
}

void ForkReader::read_forked(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::ForkedRecord>();
  const auto fork = trace_.find(fixed.fork, RecordType::kFork);
  if (!fork) return;
  model_.forks[fork->index].total_ns = fixed.total_ns;
  if (fixed.child > 0) {
    trace_.child_of(fork->index, fixed.child, record.time_ns);
  } else {
    model_.forks[fork->index].error = fixed.error;
  }
}

void ForkReader::read_vfork_call(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::VforkCallRecord>();
  if (fixed.call != trace::VforkCall::kExit) return;
  const model::ProcessId process = trace_.process_of(record);
  const std::size_t id = model_.vfork_exits.size();
  model_.vfork_exits.push_back({process, fixed.child, record.tid, {}});
  trace_.name_stack(
      process, fixed.stack, [id](model::Model & m) -> auto& { return m.vfork_exits[id].stack; });
}

// Notes how a child ended. If several children have had this pid, the record is about the last of these children. A
// child whose fork was not recorded is ignored.
void ForkReader::read_child_end(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::ChildEndRecord>();
  const auto child = trace_.find_process(fixed.child);
  if (!child || !trace_.has_fork(*child) || model_.processes[*child].ppid != record.pid) return;
  model_.processes[*child].exit_status = fixed.status;
}

}  // namespace forksight::collect
