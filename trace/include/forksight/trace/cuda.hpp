// The records of the CUDA driver. Part of the trace format: see format.hpp.
#pragma once

#include <cstdint>

namespace forksight::trace {

// How a program obtained a function of the driver.
enum class CudaWay : std::uint32_t { kUnknown = 0, kSymbol = 1, kDlsym = 2, kGetProcAddress = 3 };

enum CudaFlag : std::uint32_t {
  kCudaInitialised = 1U << 0U,  // cuInit has returned 0 in this process, or, if kCudaLost is set, in an ancestor
  // The shim asked the driver for `devices` and `active_contexts`. The shim has seen no creation of a context since
  // then.
  kCudaAsked = 1U << 1U,
  // An ancestor initialised the driver before an earlier fork, so the forking process itself cannot use the driver.
  kCudaLost = 1U << 2U,
};

// The CUDA driver of a process that forks. The forking thread writes this record after its kFork.
struct CudaRecord {
  std::uint64_t fork;             // ref to kFork
  std::uint64_t module_bias;      // ModuleRecord::bias of the driver's library
  std::uint64_t init_stack;       // ref to kStack of the caller of the first cuInit that succeeded, 0: not seen
  CudaWay init_way;               // how that caller obtained cuInit
  std::int32_t init_tid;          // the caller's thread, 0: not seen
  char init_thread[16];           // the name of that thread
  std::int32_t driver_version;    // from cuDriverGetVersion: 12020 is 12.2; 0: not asked
  std::int32_t devices;           // result of cuDeviceGetCount; -1: not asked
  std::uint64_t active_contexts;  // bit N: the primary context of device N is active
  std::uint32_t flags;            // CudaFlag
  std::uint32_t reserved;
};
static_assert(sizeof(CudaRecord) == 72);

// A function of the CUDA driver, of MPI or of UCX that a forked child called.
struct CudaFunctionRecord {
  std::uint64_t address;
  char name[56];  // as in the library's export, NUL-terminated
};
static_assert(sizeof(CudaFunctionRecord) == 64);

enum class CudaIpcKind : std::uint32_t {
  kExport = 1,  // cuIpcGetMemHandle returned 0; one record for each handle
  kOpen = 2,    // cuIpcOpenMemHandle
  kClose = 3,   // cuIpcCloseMemHandle
  kFree = 4,    // cuMemFree of memory that was exported (kExport)
  // The process has written one of the records above, and ends by exit() or by returning from main. The process writes
  // this record after its exit handlers have run.
  kEnd = 5,
  // A context was destroyed. The driver then closes the memory that was opened in this context, but the shim does not
  // know which memory that is.
  kContextGone = 6,
};

// Device memory that processes share by handle. A record of kClose or kFree is written before the call. Its `ended_ns`
// and `result` are set when the call returns. Records of the other kinds are written after the call. Times are of
// CLOCK_MONOTONIC.
struct CudaIpcRecord {
  // FNV-1a of the 64 bytes of the handle. For kClose and kFree it is the handle by which the memory was opened or
  // exported.
  std::uint64_t handle;
  std::uint64_t address;  // address of the memory in this process; 0 for a kOpen that failed
  std::uint64_t bytes;    // kOpen: size according to cuMemGetAddressRange; 0: not asked
  std::uint64_t stack;    // ref to kStack of the caller
  std::uint64_t began_ns;
  std::uint64_t ended_ns;  // 0: the call has not returned
  std::uint64_t used_ns;   // kOpen: when the latest copy or memset of this memory began; changes in place
  CudaIpcKind kind;
  std::int32_t result;  // what the driver returned
};
static_assert(sizeof(CudaIpcRecord) == 64);

}  // namespace forksight::trace
