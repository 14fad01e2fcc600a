// Reads which locks were held at a fork. Also reads what forked processes do with these locks, and with everything else
// that the fork broke.
#pragma once

#include <cstdint>

#include "collect/lock_table.hpp"
#include "collect/read_calls.hpp"
#include "collect/read_cuda.hpp"
#include "collect/trace_context.hpp"

namespace forksight::collect {

class LockReader {
 public:
  LockReader(TraceContext& trace, LockTable& locks, const CallReader& calls, const CudaReader& cuda)
      : trace_(trace), model_(trace.model()), locks_(locks), calls_(calls), cuda_(cuda) {}

  void read_held(const TraceRecord& record);
  void read_touch(const TraceRecord& record);
  void read_lock_name(const TraceRecord& record);
  void read_touch_end(const TraceRecord& record);
  std::uint64_t free_locks_touched() const { return free_locks_touched_; }

 private:
  void read_futex_wait(const TraceRecord& record, const trace::TouchRecord& fixed, model::Touch touch);

  TraceContext& trace_;
  model::Model& model_;
  LockTable& locks_;
  const CallReader& calls_;
  const CudaReader& cuda_;
  std::uint64_t free_locks_touched_ = 0;
};

}  // namespace forksight::collect
