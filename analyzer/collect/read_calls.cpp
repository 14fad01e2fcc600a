#include "collect/read_calls.hpp"

#include <cstring>

namespace forksight::collect {

using trace::RecordType;

void CallReader::read_libc_call(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::LibcCallRecord>();
  libc_calls_.push_back({std::string(fixed.name, ::strnlen(fixed.name, sizeof fixed.name)), fixed.locks});
  trace_.bind(record, libc_calls_.size() - 1);
}

void CallReader::read_in_flight(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::InFlightRecord>();
  const auto fork = trace_.find(fixed.fork, RecordType::kFork);
  const auto thread = trace_.find(fixed.thread, RecordType::kThread);
  const auto call = trace_.find(fixed.call, RecordType::kLibcCall);
  if (!fork || !thread || !call) return;
  const model::ForkId fork_id = fork->index;
  model::Fork& about = model_.forks[fork_id];
  const bool by_child = record.pid != model_.processes[about.process].pid;
  const model::ProcessId writer = by_child ? trace_.child_of(fork_id, record.pid, record.time_ns) : about.process;
  // The child wrote this record, but only the child's parent has the thread.
  if (thread->index != about.forking_thread) model_.threads[thread->index].process = about.process;
  model::CallInFlight in_flight;
  in_flight.call = libc_calls_[call->index];
  in_flight.thread = thread->index;
  in_flight.by_forking_thread = thread->index == about.forking_thread;
  in_flight.ended = (fixed.flags & trace::kInFlightEnded) != 0;
  const std::size_t index = about.calls.size();
  about.calls.push_back(std::move(in_flight));
  trace_.name_stack(
      writer, fixed.stack,
      [ fork_id, index ](model::Model & m) -> auto& { return m.forks[fork_id].calls[index].called_at; });
  trace_.bind(record, index, fork_id);
}

void CallReader::read_stream(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::StreamRecord>();
  const auto fork = trace_.find(fixed.fork, RecordType::kFork);
  const auto thread = trace_.find(fixed.thread, RecordType::kThread);
  if (!fork || !thread) return;
  model::Fork& about = model_.forks[fork->index];
  model_.threads[thread->index].process = about.process;
  about.streams.push_back({fixed.lock, fixed.number, thread->index});
}

void CallReader::read_quiesced(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::QuiescedRecord>();
  const auto fork = trace_.find(fixed.fork, RecordType::kFork);
  if (!fork) return;
  model_.forks[fork->index].quiesced = model::Quiesced{fixed.waited_ns, fixed.waited_for, fixed.left};
}

}  // namespace forksight::collect
