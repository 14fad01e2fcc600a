// Mechanism: the program uses a library for another purpose, and the library initialises the CUDA driver. The program
//            forks. Its child is the first process that wants to use the GPU.
// To blame:  the library's cuInit. The program's own source does not use CUDA before the fork.
// User sees: "CUDA is not initialised" in a program that initialises CUDA in the right place.
// Fix:       call the library in the children only, or let the child exec.
// Repaired:  the library is a version that does not look for GPUs.
//
// EXPECT-BARE: error
// EXPECT: cuda-used-after-fork proven error library=libcuda.so.1
// EXPECT-STACK: culprit look_for_gpus@library.c:init library_version@library.c:look
// EXPECT-STACK: stack use_gpu@touch main@child
#include <dlfcn.h>

#include "../baton.h"
#include "driver.h"

__attribute__((noinline)) static int use_gpu(void) {
  CUresult (*const init)(unsigned) = (CUresult(*)(unsigned))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuInit");
  return init != NULL && init(0) == CUDA_SUCCESS ? 0 : 1;  // MARK: touch
}

int main(void) {
  void* const library = dlopen(LIBRARY, RTLD_NOW);
  if (library == NULL) abort();
  int (*const version)(void) = (int (*)(void))dlsym(library, "library_version");
  if (version == NULL || version() < 1) abort();
  const pid_t child = fork();
  if (child == 0) _exit(use_gpu());  // MARK: child
  return end_of(child);
}
