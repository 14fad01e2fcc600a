// Atfork handlers: their list, how long each took, and which one is running.
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
  // Called when the whole trace has been read: the records of runs change in place, and may refer to later records.
  void attach_handler_runs();

 private:
  void attach_run(const TraceRecord& record, model::ProcessId process);
  void attach_times(const TraceRecord& record, model::ForkId fork, model::ProcessId process);
  void attach_wait(const TraceRecord& record, model::HandlerRun& run);
  void attach_hold(const TraceRecord& record, model::HandlerRun& run);

  TraceContext& trace_;
  model::Model& model_;
  // Lists of handlers, by the index that a kHandlers record became: where its entries begin, and how many they are.
  std::vector<std::pair<model::HandlerId, std::size_t>> handler_lists_;
  std::vector<std::pair<const TraceRecord*, model::ProcessId>> handler_runs_;
  std::unordered_map<std::uint64_t, std::vector<const TraceRecord*>> handler_waits_;  // open ones, by their run
  std::unordered_map<std::uint64_t, std::vector<const TraceRecord*>> handler_holds_;  // by their wait
};

}  // namespace forksight::collect
