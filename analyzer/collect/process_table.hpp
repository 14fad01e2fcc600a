// Finds out which process a record is about. Traces name pids, but a pid does not identify a process: a later process
// may have the same pid. One process may also have several traces, because it gets a new trace when it calls exec.
// Within a host, the pid and the start time together identify a process. The start time of a forked child is not known,
// because the child writes to its parent's trace. So a forked child is identified by its pid, its parent and the order
// in time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collect/trace_file.hpp"
#include "model/model.hpp"

namespace forksight::collect {

class ProcessTable {
 public:
  explicit ProcessTable(model::Model& model) : model_(model) {}

  // Enters the process that created a trace.
  model::ProcessId enter_creator(const TraceInfo& info);
  // Enters a forked child that was first seen at `time_ns`. `pid_of_parent` is the pid of the process that forked the
  // child; 0: not known.
  model::ProcessId enter_child(const TraceInfo& info, std::int32_t pid, std::int32_t pid_of_parent,
                               std::uint64_t time_ns);

  // Called when all traces are entered. If a process has called exec, removes the atfork handlers that were running in
  // the old program, and marks the touches of the old program as returned.
  void end_earlier_images() const;

 private:
  struct Entry {
    model::ProcessId process = 0;
    std::uint64_t seen_ns = 0;
    bool is_creator = false;  // the process created a trace, so its start time is known
    bool is_child = false;    // a recorded fork made the process
  };
  model::ProcessId add(const TraceInfo& info, std::int32_t pid, std::int32_t ppid, const Entry& entry);

  model::Model& model_;
  // Maps each process to the time at which the trace of its latest program began (CLOCK_MONOTONIC).
  std::map<model::ProcessId, std::uint64_t> image_ns_;
  std::map<std::pair<std::string, std::int32_t>, std::vector<Entry>> entries_;
};

}  // namespace forksight::collect
