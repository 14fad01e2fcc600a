// Reads the records of Python stacks. After the last record, the Python stacks are combined with the native threads and
// stacks.
#pragma once

#include <map>
#include <unordered_map>
#include <utility>

#include "collect/trace_context.hpp"

namespace forksight::collect {

class PythonReader {
 public:
  explicit PythonReader(TraceContext& trace) : trace_(trace), model_(trace.model()) {}

  void read_python_stacks(const TraceRecord& record);
  void read_python_at_fork(const TraceRecord& record);
  void read_python_signal(const TraceRecord& record);
  // Inserts Python's frames into the native stacks. Called when the native stacks have been unwound.
  void join_python();

 private:
  TraceContext& trace_;
  model::Model& model_;
  std::unordered_map<std::size_t, model::PythonId> python_of_touch_;              // by index of the touch
  std::map<std::pair<std::size_t, std::size_t>, model::PythonId> python_of_use_;  // by indices of share and use
};

}  // namespace forksight::collect
