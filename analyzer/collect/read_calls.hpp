// Reads the records that say which libc functions threads were executing at a fork, and which locks these functions may
// have held.
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
  // Returns the call with this index in `libc_calls_`. TraceContext::find() gives this index for a kLibcCall record.
  const model::LibcCall& call(std::size_t index) const { return libc_calls_[index]; }

 private:
  TraceContext& trace_;
  model::Model& model_;
  std::vector<model::LibcCall> libc_calls_;
};

}  // namespace forksight::collect
