// Reads the orders in which threads took locks. Also reads which locks a child took that were free at its fork only by
// luck.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "collect/lock_table.hpp"
#include "collect/trace_context.hpp"

namespace forksight::collect {

class ForesightReader {
 public:
  ForesightReader(TraceContext& trace, LockTable& locks) : trace_(trace), model_(trace.model()), locks_(locks) {}

  void read_thread_life(const TraceRecord& record);
  void read_lock_order(const TraceRecord& record);
  void read_racy_touch(const TraceRecord& record);
  // Called after the whole trace was read. Only then all libraries are known, and it is known which thread joined
  // which.
  void attach_lock_orders();

 private:
  void attach_lock_order(const TraceRecord& record, model::ProcessId process);

  TraceContext& trace_;
  model::Model& model_;
  std::vector<std::pair<const TraceRecord*, model::ProcessId>> lock_orders_;
  // the id of a ThreadLife, and the reference to the record of its joiner
  std::vector<std::pair<model::LifeId, std::uint64_t>> joiners_;
  LockTable& locks_;
};

}  // namespace forksight::collect
