// Reads the records about threads. Finds the library that owns each thread. Also reads which threads ended during the
// prepare handlers of a fork.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "collect/trace_context.hpp"

namespace forksight::collect {

class ThreadReader {
 public:
  explicit ThreadReader(TraceContext& trace) : trace_(trace), model_(trace.model()) {}

  void read_thread(const TraceRecord& record);
  void read_gone(const TraceRecord& record);
  void sort_threads_by_owner();
  // Returns the id of the stack on which the thread was created; 0 if the trace does not have it.
  std::uint64_t creation_stack(model::ThreadId thread) const;

 private:
  TraceContext& trace_;
  model::Model& model_;
  std::unordered_map<model::ThreadId, std::uint64_t> creation_stacks_;
};

}  // namespace forksight::collect
