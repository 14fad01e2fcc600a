// Calls by which processes share CUDA device memory through handles.
#pragma once

#include <cstdint>

#include "model/ids.hpp"
#include "model/stack.hpp"

namespace forksight::model {

enum class CudaIpcKind {
  kExport,       // cuIpcGetMemHandle succeeded
  kOpen,         // cuIpcOpenMemHandle
  kClose,        // cuIpcCloseMemHandle
  kFree,         // cuMemFree of exported memory
  kEnd,          // the process called exit() or returned from main
  kContextGone,  // a CUDA context ended, and may have closed memory that was open in it
};

// A call of one process. All times are of CLOCK_MONOTONIC, which the processes of a host share.
struct CudaIpcCall {
  ProcessId process = 0;
  std::int32_t tid = 0;
  CudaIpcKind kind = CudaIpcKind::kExport;
  std::uint64_t handle = 0;   // a hash of the bytes of the handle; 0: not known
  std::uint64_t address = 0;  // the address of the memory in this process
  std::uint64_t bytes = 0;    // kOpen: the size of the memory; 0: not known
  std::uint64_t began_ns = 0;
  std::uint64_t ended_ns = 0;  // 0: the call has not returned
  std::uint64_t used_ns = 0;   // kOpen: when the latest copy or memset of the memory began; 0: never
  int result = 0;              // valid if the call has returned
  Stack stack;
};

}  // namespace forksight::model
