// Threads: which there are, who owns them, and which of them the prepare handlers of a fork ended.
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
  // Where it was made; 0: not known.
  std::uint64_t creation_stack(model::ThreadId thread) const;

 private:
  TraceContext& trace_;
  model::Model& model_;
  std::unordered_map<model::ThreadId, std::uint64_t> creation_stacks_;
};

}  // namespace forksight::collect
