// Device memory that goes from process to process by a handle of the CUDA driver: who exported what, who has it open,
// who freed it. Facts of one process; what they mean together, the analyzer finds out.
//
// A process that exports and opens nothing has no record of this, and its calls of cuMemFree and of the copies cost it
// one load more each.
#pragma once

#include <atomic>
#include <cstdint>

#include "cuda/cuda.hpp"
#include "guest/site.hpp"

namespace forksight {

// Allocations that are exported and not freed, and memory of others that is open here. Both stay 0 in most processes.
extern std::atomic<std::uint32_t> g_ipc_exports;
extern std::atomic<std::uint32_t> g_ipc_imports;

constexpr bool is_ipc_call(CudaEntry entry) {
  return entry == CudaEntry::cuIpcGetMemHandle || entry == CudaEntry::cuIpcOpenMemHandle_v2 ||
         entry == CudaEntry::cuIpcCloseMemHandle;
}
// Of these two only a process hears that has exported something.
constexpr bool is_ipc_free(CudaEntry entry) { return entry == CudaEntry::cuMemFree_v2; }
// With the context goes what it had open. Of these only a process hears that has something open.
constexpr bool is_ipc_context(CudaEntry entry) {
  return entry == CudaEntry::cuDevicePrimaryCtxRelease_v2 || entry == CudaEntry::cuDevicePrimaryCtxReset_v2 ||
         entry == CudaEntry::cuCtxDestroy_v2;
}
// Bit N: the Nth word is an address on the device.
constexpr std::uint32_t ipc_addresses(CudaEntry entry) {
  switch (entry) {
    case CudaEntry::cuMemcpyHtoD_v2:
    case CudaEntry::cuMemcpyHtoDAsync_v2:
    case CudaEntry::cuMemsetD8_v2:
    case CudaEntry::cuMemsetD32_v2:
    case CudaEntry::cuMemsetD8Async:
    case CudaEntry::cuMemsetD32Async: return 1;
    case CudaEntry::cuMemcpyDtoH_v2:
    case CudaEntry::cuMemcpyDtoHAsync_v2: return 2;
    case CudaEntry::cuMemcpy:
    case CudaEntry::cuMemcpyAsync:
    case CudaEntry::cuMemcpyDtoD_v2:
    case CudaEntry::cuMemcpyDtoDAsync_v2: return 3;
    default: return 0;
  }
}

// The caller's words: the first `count` of them are there.
struct CudaWords {
  const std::uint64_t* words;
  std::uint32_t count;
};

// Around the real call. begin_ipc() returns the record that end_ipc() completes, 0: none.
std::uint64_t begin_ipc(CudaEntry entry, const CudaWords& call, const Site& site);
void end_ipc(CudaEntry entry, const CudaWords& call, std::uint64_t record, std::uint64_t began_ns, int result,
             const Site& site);
// The call is about to copy from or to what its words say.
void note_ipc_use(std::uint32_t addresses, const CudaWords& call);

// The driver says that the primary context of that device is active. In cuda.cpp.
bool ask_cuda_active(std::uint64_t device);
// How many bytes of memory the address is in, as the driver says; 0: it does not say. In cuda.cpp.
std::uint64_t ask_cuda_bytes(std::uint64_t address, std::uint64_t* base);

}  // namespace forksight
