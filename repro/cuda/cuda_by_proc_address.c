// Mechanism: as in cuda_by_symbol, but the program gets all functions from the driver's own cuGetProcAddress, as the
//            CUDA runtime does (libcudart 11.3 and later).
// To blame:  cuInit before the fork.
// User sees: error 3 in a worker, from a library that the parent has set up.
// Fix:       make the first CUDA call in the children, or let the child exec (spawn, forkserver).
// Repaired:  the parent forks first, and the child initialises CUDA itself.
//
// EXPECT-BARE: error
// EXPECT: cuda-used-after-fork proven error library=libcuda.so.1
// EXPECT-STACK: culprit start_runtime@init main@start
// EXPECT-STACK: stack upload@touch main@child
#include <dlfcn.h>

#include "../baton.h"
#include "driver.h"

static struct {
  CUresult (*init)(unsigned);
  CUresult (*get)(CUdevice*, int);
  CUresult (*retain)(CUcontext*, CUdevice);
  CUresult (*set_current)(CUcontext);
  CUresult (*allocate)(CUdeviceptr*, size_t);
  CUresult (*copy)(CUdeviceptr, const void*, size_t);
} runtime;

static void take_functions(void* driver) {
  CUresult (*const get)(const char*, void**, int, uint64_t, int*) =
      (CUresult(*)(const char*, void**, int, uint64_t, int*))dlsym(driver, "cuGetProcAddress_v2");
  int found = 0;
  if (get == NULL || get("cuInit", (void**)&runtime.init, 12000, 0, &found) != 0 ||
      get("cuDeviceGet", (void**)&runtime.get, 12000, 0, &found) != 0 ||
      get("cuDevicePrimaryCtxRetain", (void**)&runtime.retain, 12000, 0, &found) != 0 ||
      get("cuCtxSetCurrent", (void**)&runtime.set_current, 12000, 0, &found) != 0 ||
      get("cuMemAlloc", (void**)&runtime.allocate, 12000, 0, &found) != 0 ||
      get("cuMemcpyHtoD", (void**)&runtime.copy, 12000, 0, &found) != 0) {
    abort();
  }
}

__attribute__((noinline)) static int start_runtime(void) {
  CUcontext context = NULL;
  CUdevice device = 0;
  if (runtime.init(0) != CUDA_SUCCESS) return 1;  // MARK: init
  if (runtime.get(&device, 0) != CUDA_SUCCESS || runtime.retain(&context, device) != CUDA_SUCCESS) return 2;
  return runtime.set_current(context) == CUDA_SUCCESS ? 0 : 3;
}

__attribute__((noinline)) static int upload(CUdeviceptr memory) {
  const int numbers[] = {1, 2, 3, 4};
  return runtime.copy(memory, numbers, sizeof numbers) == CUDA_SUCCESS ? 0 : 1;  // MARK: touch
}

int main(void) {
  CUdeviceptr memory = 0;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) abort();
  take_functions(driver);
#ifndef REPAIRED
  if (start_runtime() != 0) abort();  // MARK: start
  if (runtime.allocate(&memory, 4096) != CUDA_SUCCESS) abort();
#endif
  const pid_t child = fork();
  if (child == 0) {
#ifdef REPAIRED
    if (start_runtime() != 0 || runtime.allocate(&memory, 4096) != CUDA_SUCCESS) _exit(2);
#endif
    _exit(upload(memory));  // MARK: child
  }
  return end_of(child);
}
