// Reads the notes in which a process says what its shim could not see or do.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "collect/trace_context.hpp"

namespace forksight::collect {

class NoteReader {
 public:
  explicit NoteReader(TraceContext& trace) : trace_(trace), model_(trace.model()) {}

  void read_note(const TraceRecord& record);
  void tell_notes();
  std::uint64_t left_out() const { return notes_left_out_; }

 private:
  TraceContext& trace_;
  model::Model& model_;
  struct Noted {
    std::uint64_t most = 0;
    std::set<std::int32_t> pids;
  };
  std::map<trace::NoteCode, Noted> notes_;
  std::uint64_t notes_left_out_ = 0;
};

}  // namespace forksight::collect
