// The CUDA functions that the two examples call. A real program includes <cuda.h>, or uses the CUDA runtime. The
// examples declare the functions themselves, so they can be built without a CUDA toolkit.
#pragma once

#include <cstddef>
#include <cstdio>

struct CUctx_st;
struct CUstream_st;
extern "C" {
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(CUctx_st** context, int device);
int cuCtxSetCurrent(CUctx_st* context);
int cuStreamCreate(CUstream_st** stream, unsigned flags);
int cuMemsetD8Async(unsigned long long at, unsigned char value, std::size_t bytes, CUstream_st* stream);
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, CUstream_st* stream);
int cuStreamSynchronize(CUstream_st* stream);
}

// Initialises CUDA in this process, with device 0, and makes a stream. Returns null if that fails.
inline CUstream_st* start_device() {
  CUctx_st* context = nullptr;
  CUstream_st* stream = nullptr;
  if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0 || cuCtxSetCurrent(context) != 0 ||
      cuStreamCreate(&stream, 1) != 0) {
    std::fprintf(stderr, "no device\n");
    return nullptr;
  }
  return stream;
}
