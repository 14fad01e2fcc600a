// Reads the pools of OpenMP runtimes at a fork, and which cures were applied to them.
#pragma once

#include "collect/read_threads.hpp"
#include "collect/trace_context.hpp"

namespace forksight::collect {

class PoolReader {
 public:
  PoolReader(TraceContext& trace, const ThreadReader& threads)
      : trace_(trace), model_(trace.model()), threads_(threads) {}

  void read_runtime(const TraceRecord& record);
  void read_cure(const TraceRecord& record);
  void attach_workers();

 private:
  TraceContext& trace_;
  model::Model& model_;
  const ThreadReader& threads_;
};

}  // namespace forksight::collect
