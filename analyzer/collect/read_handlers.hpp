// Reads the records about atfork handlers: the list of handlers, how long each handler took, which handler is running,
// what the running handler waits for, and which locks its thread holds.
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
  // Called after the whole trace was read. The shim changes the record of a running handler in place. So this record
  // may refer to records that were written after it.
  void attach_handler_runs();

 private:
  void attach_run(const TraceRecord& record, model::ProcessId process);
  void attach_times(const TraceRecord& record, model::ForkId fork, model::ProcessId process);
  void attach_wait(const TraceRecord& record, model::HandlerRun& run);
  void attach_hold(const TraceRecord& record, model::HandlerRun& run);

  TraceContext& trace_;
  model::Model& model_;
  // One entry for each kHandlers record: the id of the record's first handler in the model, and the number of handlers
  // in the record. TraceContext::find() returns the index of the record's entry.
  std::vector<std::pair<model::HandlerId, std::size_t>> handler_lists_;
  std::vector<std::pair<const TraceRecord*, model::ProcessId>> handler_runs_;
  // Maps the reference to a kHandlerRun record to the waits of that handler that have not ended.
  std::unordered_map<std::uint64_t, std::vector<const TraceRecord*>> handler_waits_;
  // Maps the reference to a kHandlerWait record to the locks that the thread holds during that wait.
  std::unordered_map<std::uint64_t, std::vector<const TraceRecord*>> handler_holds_;
};

}  // namespace forksight::collect
