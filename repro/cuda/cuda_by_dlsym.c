// Mechanism: as in cuda_by_symbol, but the program opens the driver at run time and looks up its functions, as most
//            programs do. The child begins with cuInit.
// To blame:  cuInit before the fork.
// User sees: cuInit returns error 3 in a worker ("not initialised"), although the machine has a GPU.
// Fix:       make the first CUDA call in the children, or let the child exec (spawn, forkserver).
// Repaired:  the parent forks first, and the child initialises CUDA itself.
//
// EXPECT-BARE: error
// EXPECT: cuda-used-after-fork proven error library=libcuda.so.1
// EXPECT-STACK: culprit count_devices@init main@parent
// EXPECT-STACK: stack count_devices@init main@child
#include <dlfcn.h>

#include "../baton.h"
#include "driver.h"

__attribute__((noinline)) static int count_devices(void* driver) {
  CUresult (*const init)(unsigned) = (CUresult(*)(unsigned))dlsym(driver, "cuInit");
  CUresult (*const count)(int*) = (CUresult(*)(int*))dlsym(driver, "cuDeviceGetCount");
  int devices = 0;
  if (init == NULL || count == NULL) return -1;
  if (init(0) != CUDA_SUCCESS) return -2;  // MARK: init
  return count(&devices) == CUDA_SUCCESS ? devices : -3;
}

int main(void) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) abort();
#ifndef REPAIRED
  if (count_devices(driver) < 1) abort();  // MARK: parent
#endif
  const pid_t child = fork();
  if (child == 0) _exit(count_devices(driver) > 0 ? 0 : 1);  // MARK: child
  return end_of(child);
}
