// The records of the CUDA driver. Part of the trace format: see format.hpp.
#pragma once

#include <cstdint>

namespace forksight::trace {

// How a program came by the driver's functions.
enum class CudaWay : std::uint32_t { kUnknown = 0, kSymbol = 1, kDlsym = 2, kGetProcAddress = 3 };

enum CudaFlag : std::uint32_t {
  kCudaInitialised = 1U << 0U,  // cuInit has returned 0 in this process, or in the ancestor that kCudaLost speaks of
  kCudaAsked = 1U << 1U,        // `devices` and `active_contexts` are the driver's own answers, not older than the latest
                                // context that the shim saw being made
  kCudaLost = 1U << 2U,         // initialised before an earlier fork: the forking process cannot use it either
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

}  // namespace forksight::trace
