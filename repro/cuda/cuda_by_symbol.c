// Mechanism: the program is linked with the CUDA driver. The parent initialises the driver and forks. In the child the
//            driver refuses every call.
// To blame:  cuInit before the fork.
// User sees: CUDA_ERROR_NOT_INITIALIZED in a worker, although the parent has just used the GPU.
// Fix:       make the first CUDA call in the children, or let the child exec (spawn, forkserver).
// Repaired:  the parent forks first, and the child initialises CUDA itself.
//
// EXPECT-BARE: error
// EXPECT: cuda-used-after-fork proven error library=libcuda.so.1
// EXPECT-STACK: culprit prepare_gpu@init main@prepare
// EXPECT-STACK: stack allocate@touch work@allocate main@child
#include "../baton.h"
#include "driver.h"

__attribute__((noinline)) static CUresult allocate(CUdeviceptr* memory) {
  const CUresult result = cuMemAlloc_v2(memory, 4096);  // MARK: touch
  if (result != CUDA_SUCCESS) fprintf(stderr, "cuMemAlloc: error %d\n", result);
  return result;
}

__attribute__((noinline)) static int prepare_gpu(CUcontext* context) {
  CUdevice device = 0;
  if (cuInit(0) != CUDA_SUCCESS) return 1;  // MARK: init
  if (cuDeviceGet(&device, 0) != CUDA_SUCCESS) return 2;
  if (cuDevicePrimaryCtxRetain(context, device) != CUDA_SUCCESS) return 3;
  return cuCtxSetCurrent(*context) == CUDA_SUCCESS ? 0 : 4;
}

__attribute__((noinline)) static int work(void) {
  CUdeviceptr memory = 0;
  if (allocate(&memory) != CUDA_SUCCESS) return 10;  // MARK: allocate
  return cuMemFree_v2(memory) == CUDA_SUCCESS ? 0 : 11;
}

int main(void) {
  CUcontext context = NULL;
#ifndef REPAIRED
  if (prepare_gpu(&context) != 0 || work() != 0) abort();  // MARK: prepare
#endif
  const pid_t child = fork();
  if (child == 0) {
#ifdef REPAIRED
    if (prepare_gpu(&context) != 0) _exit(5);
#endif
    _exit(work());  // MARK: child
  }
  return end_of(child);
}
