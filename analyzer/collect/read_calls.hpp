// Reads the records about libc functions that threads were executing at a fork. The records say which locks these
// functions may have held.
#pragma once

#include <vector>

#include "collect/trace_context.hpp"

namespace forksight::collect {

class CallReader {
 public:
  explicit CallReader(TraceContext& trace) : trace_(trace), model_(trace.model()) {}

  void read_libc_call(const TraceRecord& record);
  void read_in_flight(const TraceRecord& record);
  void read_stream(const TraceRecord& record);
  void read_quiesced(const TraceRecord& record);
  // Returns the call at `index` in `libc_calls_`. For a kLibcCall record, TraceContext::find() gives this index.
  const model::LibcCall& call(std::size_t index) const { return libc_calls_[index]; }

 private:
  TraceContext& trace_;
  model::Model& model_;
  std::vector<model::LibcCall> libc_calls_;
};

}  // namespace forksight::collect
