// Reads the records about forks: the forking process, its threads, and how its children ended.
#pragma once

#include "collect/trace_context.hpp"

namespace forksight::collect {

class ForkReader {
 public:
  explicit ForkReader(TraceContext& trace) : trace_(trace), model_(trace.model()) {}

  void read_fork(const TraceRecord& record);
  void read_forked(const TraceRecord& record);
  void read_vfork_call(const TraceRecord& record);
  void read_child_end(const TraceRecord& record);

 private:
  void name_lost_waits(model::ForkId id);

  TraceContext& trace_;
  model::Model& model_;
};

}  // namespace forksight::collect
