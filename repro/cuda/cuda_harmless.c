// Mechanism: none. forksight must report nothing about these uses of the driver. A macro chooses one of them:
//   UNUSED    the child does not use CUDA
//   EXEC      the child execs a program that uses CUDA
//   TEARDOWN  the child's exit handler asks for the current context, to free memory. The driver refuses the call, which
//             does no harm
//   LOADED    the parent loads the driver and asks for its version, and only the child initialises it
//   THREADS   as UNUSED, in a process with a second thread
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <pthread.h>
#include <string.h>

#include "../baton.h"
#include "driver.h"

static int initialise(CUcontext* context) {
  return cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(context, 0) == CUDA_SUCCESS &&
                 cuCtxSetCurrent(*context) == CUDA_SUCCESS
             ? 0
             : 1;
}

#ifdef TEARDOWN
static CUdeviceptr cache;
static void give_back(void) {
  CUcontext context = NULL;
  if (cuCtxGetCurrent(&context) == CUDA_SUCCESS) cuMemFree_v2(cache);
}
#endif

#ifdef THREADS
static void* sleep_in_thread(void* unused) {
  park();
  return unused;
}
#endif

int main(int argc, char** argv) {
  CUcontext context = NULL;
  if (argc > 1 && strcmp(argv[1], "again") == 0) return initialise(&context);
#ifdef LOADED
  int version = 0;
  if (cuDriverGetVersion(&version) != CUDA_SUCCESS || version < 1000) abort();
#else
  if (initialise(&context) != 0) abort();
#endif
#ifdef TEARDOWN
  if (cuMemAlloc_v2(&cache, 64) != CUDA_SUCCESS || atexit(give_back) != 0) abort();
#endif
#ifdef THREADS
  pthread_t thread;
  if (pthread_create(&thread, NULL, sleep_in_thread, NULL) != 0) abort();
#endif
  const pid_t child = fork();
  if (child == 0) {
#if defined EXEC
    execl("/proc/self/exe", argv[0], "again", (char*)NULL);
    _exit(126);
#elif defined TEARDOWN
    exit(0);
#elif defined LOADED
    _exit(initialise(&context));
#else
    _exit(0);
#endif
  }
  return end_of(child);
}
