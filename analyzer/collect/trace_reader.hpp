// Adds the records of one trace file to the model. Each subject has its own reader. This file says which record goes to
// which reader, and in which order the readers finish when all records are read.
#pragma once

#include <cstdint>

#include "collect/lock_table.hpp"
#include "collect/read_calls.hpp"
#include "collect/read_cuda.hpp"
#include "collect/read_foresight.hpp"
#include "collect/read_forks.hpp"
#include "collect/read_handlers.hpp"
#include "collect/read_locks.hpp"
#include "collect/read_notes.hpp"
#include "collect/read_pools.hpp"
#include "collect/read_python.hpp"
#include "collect/read_threads.hpp"
#include "collect/trace_context.hpp"

namespace forksight::collect {

class TraceReader {
 public:
  // `file` and `budget` must outlive the reader. If `symbolize` is false, no name is looked up. Without a budget, all
  // records are read.
  TraceReader(const TraceFile& file, model::Model& model, ProcessTable& processes, bool symbolize,
              TraceBudget* budget = nullptr)
      : trace_(file, model, processes, symbolize, budget) {}
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;
  void read();

 private:
  void read_record(const TraceRecord& record);
  void read_module(const TraceRecord& record);
  void tell_limits();

  TraceContext trace_;
  LockTable lock_table_{trace_};
  ThreadReader threads_{trace_};
  PoolReader pools_{trace_, threads_};
  ForkReader forks_{trace_};
  CallReader calls_{trace_};
  CudaReader cuda_{trace_};
  LockReader locks_{trace_, lock_table_, calls_, cuda_};
  HandlerReader handlers_{trace_};
  PythonReader python_{trace_};
  ForesightReader foresight_{trace_, lock_table_};
  NoteReader notes_{trace_};
  std::uint64_t modules_left_out_ = 0;
  std::size_t records_read_ = 0;
  bool has_all_names_ = true;
  bool has_module_without_path_ = false;
};

}  // namespace forksight::collect
