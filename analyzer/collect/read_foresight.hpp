// Reads the orders in which threads took locks, and the locks that a child took only by luck: they were free at its
// fork.
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
  // Called after the whole trace was read. Then it is known which libraries there are, and which thread joined which.
  void attach_lock_orders();

 private:
  void attach_lock_order(const TraceRecord& record, model::ProcessId process);

  TraceContext& trace_;
  model::Model& model_;
  std::vector<std::pair<const TraceRecord*, model::ProcessId>> lock_orders_;
  std::vector<std::pair<model::LifeId, std::uint64_t>> joiners_;  // a thread's life, and the reference to its joiner
  LockTable& locks_;
};

}  // namespace forksight::collect
