// The records of the CUDA driver. Part of the trace format: see format.hpp.
#pragma once

#include <cstdint>

namespace forksight::trace {

// How a program came by the driver's functions.
enum class CudaWay : std::uint32_t { kUnknown = 0, kSymbol = 1, kDlsym = 2, kGetProcAddress = 3 };

enum CudaFlag : std::uint32_t {
  kCudaInitialised = 1U << 0U,  // cuInit has returned 0 in this process, or in the ancestor that kCudaLost speaks of
  kCudaAsked = 1U << 1U,  // `devices` and `active_contexts` are the driver's own answers, not older than the latest
                          // context that the shim saw being made
  kCudaLost = 1U << 2U,   // initialised before an earlier fork: the forking process cannot use it either
};

// The CUDA driver of a process that forks, written by the forking thread after its kFork.
struct CudaRecord {
  std::uint64_t fork;             // ref to kFork
  std::uint64_t module_bias;      // ModuleRecord::bias of the driver's library
  std::uint64_t init_stack;       // ref to kStack of the caller of the first cuInit that succeeded, 0: not seen
  CudaWay init_way;               // how that caller reached it
  std::int32_t init_tid;          // its thread, 0: not seen
  char init_thread[16];           // and that thread's name
  std::int32_t driver_version;    // as cuDriverGetVersion says: 12020 is 12.2; 0: not asked
  std::int32_t devices;           // cuDeviceGetCount, -1: not asked
  std::uint64_t active_contexts;  // bit N: the primary context of device N is active
  std::uint32_t flags;            // CudaFlag
  std::uint32_t reserved;
};
static_assert(sizeof(CudaRecord) == 72);

// A function of the driver that a forked child called.
struct CudaFunctionRecord {
  std::uint64_t address;
  char name[56];  // as the driver exports it, NUL-terminated
};
static_assert(sizeof(CudaFunctionRecord) == 64);

enum class CudaIpcKind : std::uint32_t {
  kExport = 1,  // cuIpcGetMemHandle returned 0; once a handle
  kOpen = 2,    // cuIpcOpenMemHandle
  kClose = 3,   // cuIpcCloseMemHandle
  kFree = 4,    // cuMemFree of what a kExport is of
  kEnd = 5,  // the process, which has one of the above, ends by exit() or by the end of main: after its exit handlers
  kContextGone = 6,  // a context was destroyed, and what it had open with it: which that was is not known
};

// Device memory that is shared between processes by handle. kClose and kFree are written before the call, and their
// `ended_ns` and `result` once it comes back; the others after it. Times are of CLOCK_MONOTONIC.
struct CudaIpcRecord {
  std::uint64_t handle;   // FNV-1a of its 64 bytes; kClose, kFree: of those that the address was opened or exported by
  std::uint64_t address;  // of the memory in this process; of a kOpen that failed, 0
  std::uint64_t bytes;    // kOpen: as cuMemGetAddressRange says, 0: it was not asked
  std::uint64_t stack;    // ref to kStack of the caller
  std::uint64_t began_ns;
  std::uint64_t ended_ns;  // 0: has not come back
  std::uint64_t used_ns;  // kOpen: when the latest copy to or from the memory, or memset of it, began; changes in place
  CudaIpcKind kind;
  std::int32_t result;  // of the driver
};
static_assert(sizeof(CudaIpcRecord) == 64);

}  // namespace forksight::trace
