// The types and numbers of the CUDA driver's interface that are used here. They are declared here, so no CUDA header is
// needed. Source: "CUDA Driver API", version 12.2, sections 5 (data types) and 6.1
// (https://docs.nvidia.com/cuda/archive/12.2.0/cuda-driver-api/).
#pragma once

#include <cstddef>
#include <cstdint>

struct CUctx_st;
struct CUevent_st;
struct CUstream_st;

namespace forksight::ipc_cuda::detail {

using cu_device = int;
using cu_address = unsigned long long;
using cu_context = CUctx_st*;
using cu_event = CUevent_st*;
using cu_stream = CUstream_st*;
using cu_allocation_handle = unsigned long long;

struct cu_uuid {
  char bytes[16];
};
// CUipcMemHandle and CUipcEventHandle, passed by value.
struct cu_ipc_handle {
  char reserved[64];
};
struct cu_location {
  int type;
  int id;
};
// CUmemAllocationProp
struct cu_allocation {
  int type;
  int handle_types;
  cu_location location;
  void* win32_metadata;
  unsigned char compression, gpu_direct_rdma;
  unsigned short usage;
  unsigned char reserved[4];
};
static_assert(sizeof(cu_allocation) == 32 && offsetof(cu_allocation, compression) == 24);
// CUmemAccessDesc
struct cu_access {
  cu_location location;
  int flags;
};
static_assert(sizeof(cu_access) == 12);

enum cu_answer : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kAlreadyMapped = 208,
  kInvalidHandle = 400,
  kNotReady = 600,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureImplicit = 906,
};
enum cu_number : int {
  kAttributeVmm = 102,      // CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
  kAttributePosixFd = 103,  // CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
  kAttributeMps = 133,      // CU_DEVICE_ATTRIBUTE_MPS_ENABLED, since CUDA 12.2
  kPointerDevice = 9,       // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
  kPointerLegacyIpc = 10,   // CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
  kAllocationPinned = 1,
  kLocationDevice = 1,
  kAccessRead = 1,
  kAccessReadWrite = 3,
  kHandlePosixFd = 1,
};
constexpr unsigned kEventDisableTiming = 2;
constexpr unsigned kLazyPeerAccess = 1;
constexpr unsigned kHostRegisterMapped = 2;  // CU_MEMHOSTREGISTER_DEVICEMAP
constexpr unsigned kWaitUntilAtLeast = 0;    // CU_STREAM_WAIT_VALUE_GEQ: (int32_t)(word - value) >= 0
constexpr int kCaptureRelaxed = 2;           // CU_STREAM_CAPTURE_MODE_RELAXED

}  // namespace forksight::ipc_cuda::detail
