// Device memory that processes share by a handle of the CUDA driver: which process exported this memory, has it open,
// or freed it. The shim records the facts of one process. The analyzer compares the facts of all processes.
//   In a process that neither exports nor opens memory, the shim writes no such facts. In such a process, each call of
//   cuMemFree, or of a function that copies or fills memory or ends a context, costs one more load.
#pragma once

#include <atomic>
#include <cstdint>

#include "cuda/cuda.hpp"
#include "guest/site.hpp"

namespace forksight {

// The number of allocations that this process has exported and not freed, and the number of allocations of other
// processes that this process has open. Both numbers stay 0 in most processes.
extern std::atomic<std::uint32_t> g_ipc_exports;
extern std::atomic<std::uint32_t> g_ipc_imports;

constexpr bool is_ipc_call(CudaEntry entry) {
  return entry == CudaEntry::cuIpcGetMemHandle || entry == CudaEntry::cuIpcOpenMemHandle_v2 ||
         entry == CudaEntry::cuIpcCloseMemHandle;
}
// True for the call that frees memory. This call is noted only in a process that has exported something.
constexpr bool is_ipc_free(CudaEntry entry) { return entry == CudaEntry::cuMemFree_v2; }
// True for a call that may end a context, which closes the memory that was opened in the context. Such calls are noted
// only in a process that has memory of another process open.
constexpr bool is_ipc_context(CudaEntry entry) {
  return entry == CudaEntry::cuDevicePrimaryCtxRelease_v2 || entry == CudaEntry::cuDevicePrimaryCtxReset_v2 ||
         entry == CudaEntry::cuCtxDestroy_v2;
}
// Which arguments of a call are addresses on the device. Bit N: the argument with the index N.
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

// The caller's arguments: `count` words.
struct CudaWords {
  const std::uint64_t* words;
  std::uint32_t count;
};

// begin_ipc() is called before the real call, and end_ipc() after it. If the call frees or closes memory that is
// shared, begin_ipc() writes a record and returns a reference to it, and end_ipc() completes the record. For all other
// calls, begin_ipc() returns 0.
std::uint64_t begin_ipc(CudaEntry entry, const CudaWords& call, const Site& site);
void end_ipc(CudaEntry entry, const CudaWords& call, std::uint64_t record, std::uint64_t began_ns, int result,
             const Site& site);
// Called before a call that reads or writes memory at the addresses in its arguments. If such an address is in memory
// of another process, notes the time of the use.
void note_ipc_use(std::uint32_t addresses, const CudaWords& call);

// True if the driver says that the primary context of this device is active. Defined in cuda.cpp.
bool ask_cuda_active(std::uint64_t device);
// The size of the allocation that contains the address, according to the driver; 0: the driver does not say. Sets
// `base` to the start of the allocation. Defined in cuda.cpp.
std::uint64_t ask_cuda_bytes(std::uint64_t address, std::uint64_t* base);

}  // namespace forksight
