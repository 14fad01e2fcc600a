// Enters each lock of a trace into the model once, however many records name the lock.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collect/trace_context.hpp"

namespace forksight::collect {

class LockTable {
 public:
  explicit LockTable(TraceContext& trace) : trace_(trace), model_(trace.model()) {}
  model::LockId lock_of(const trace::HeldRecord& held, model::ProcessId process);

 private:
  TraceContext& trace_;
  model::Model& model_;
  std::unordered_map<std::uint64_t, std::vector<model::LockId>> locks_;  // by address
};

}  // namespace forksight::collect
