// Reads the records of atfork handlers: their list, how long each took, which one is running, the waits of the running
// one, and the locks that its thread holds.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collect/trace_context.hpp"

namespace forksight::collect {

class HandlerReader {
 public:
  explicit HandlerReader(TraceContext& trace) : trace_(trace), model_(trace.model()) {}

  void read_handlers(const TraceRecord& record);
  void read_handler_run(const TraceRecord& record);
  void read_handler_wait(const TraceRecord& record);
  void read_handler_held(const TraceRecord& record);
  // Called after the whole trace was read. The shim changes the record of a run in place, so the record may refer to
  // records that were written after it.
  void attach_handler_runs();

 private:
  void attach_run(const TraceRecord& record, model::ProcessId process);
  void attach_times(const TraceRecord& record, model::ForkId fork, model::ProcessId process);
  void attach_wait(const TraceRecord& record, model::HandlerRun& run);
  void attach_hold(const TraceRecord& record, model::HandlerRun& run);

  TraceContext& trace_;
  model::Model& model_;
  // For each kHandlers record: the id of its first handler in the model, and the number of its handlers. `trace_`
  // remembers the index in this vector for each such record.
  std::vector<std::pair<model::HandlerId, std::size_t>> handler_lists_;
  std::vector<std::pair<const TraceRecord*, model::ProcessId>> handler_runs_;
  // For each reference to a kHandlerRun: its waits that have not ended.
  std::unordered_map<std::uint64_t, std::vector<const TraceRecord*>> handler_waits_;
  // For each reference to a kHandlerWait: the locks that the thread holds meanwhile.
  std::unordered_map<std::uint64_t, std::vector<const TraceRecord*>> handler_holds_;
};

}  // namespace forksight::collect
