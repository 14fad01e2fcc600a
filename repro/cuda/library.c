// A library that looks for GPUs without being asked, as many libraries do when they are loaded. Part of
// cuda_hidden_init.
#include <dlfcn.h>

#include "driver.h"

int library_version(void);

#ifndef LAZY
__attribute__((noinline)) static int look_for_gpus(void) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) return 0;
  CUresult (*const init)(unsigned) = (CUresult(*)(unsigned))dlsym(driver, "cuInit");
  if (init == NULL || init(0) != CUDA_SUCCESS) return 0;  // MARK: init
  return 1;
}
#endif

int library_version(void) {
#ifdef LAZY
  return 1;
#else
  return look_for_gpus() ? 2 : 1;  // MARK: look
#endif
}
