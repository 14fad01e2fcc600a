// Reads the records about the CUDA driver, MPI and UCX. They say in which state these libraries were at a fork, and
// which of their functions a forked child called.
#pragma once

#include <string>
#include <vector>

#include "collect/trace_context.hpp"

namespace forksight::collect {

class CudaReader {
 public:
  explicit CudaReader(TraceContext& trace) : trace_(trace), model_(trace.model()) {}

  void read_cuda(const TraceRecord& record);
  void read_cuda_ipc(const TraceRecord& record);
  void read_mpi(const TraceRecord& record);
  void read_cuda_function(const TraceRecord& record);
  // Returns the name at `index` in `cuda_functions_`. For a kCudaFunction record, TraceContext::find() gives this
  // index.
  const std::string& function(std::size_t index) const { return cuda_functions_[index]; }

 private:
  TraceContext& trace_;
  model::Model& model_;
  std::vector<std::string> cuda_functions_;
};

}  // namespace forksight::collect
