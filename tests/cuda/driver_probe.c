/* Calls the CUDA driver in the parent and in children, and prints each answer. The output must be identical without and
 * with the shim. A macro chooses how the program gets the driver:
 *
 *   LINKED   it is linked with the driver
 *   OPENED   it opens the driver with RTLD_LOCAL, and finds the functions by dlsym() and cuGetProcAddress()
 *   ABSENT   it has no driver; dlsym() must not find a function of the driver
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "repro/cuda/driver.h"

#define SHOW(expression)                                          \
  do {                                                            \
    errno = 4711;                                                 \
    const long long result_ = (long long)(expression);            \
    printf("%s = %lld, errno %d\n", #expression, result_, errno); \
  } while (0)

/* True if the program runs with a real driver. In this case the program makes no calls that only the test driver can
 * handle. The program never prints memory addresses, because they may differ between two runs. */
static int on_real_driver;

struct functions {
  CUresult (*init)(unsigned);
  CUresult (*count)(int*);
  CUresult (*get)(CUdevice*, int);
  CUresult (*name)(char*, int, CUdevice);
  CUresult (*retain)(CUcontext*, CUdevice);
  CUresult (*state)(CUdevice, unsigned*, int*);
  CUresult (*set)(CUcontext);
  CUresult (*current)(CUcontext*);
  CUresult (*allocate)(CUdeviceptr*, size_t);
  CUresult (*release)(CUdeviceptr);
  CUresult (*up)(CUdeviceptr, const void*, size_t);
  CUresult (*down)(void*, CUdeviceptr, size_t);
  CUresult (*synchronise)(void);
  CUresult (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                     void**);
};

static void use(const struct functions* cuda) {
  CUdevice device = -1;
  CUcontext context = NULL;
  CUcontext current = NULL;
  CUdeviceptr memory = 0;
  char name[64] = "";
  char back[8] = "";
  int count = -1;
  int active = -1;
  unsigned flags = 0;
  uint64_t sum = 0;
  void* parameters[] = {&sum};
  SHOW(cuda->count(&count));
  SHOW(cuda->init(1));
  SHOW(cuda->init(0));
  SHOW(cuda->count(&count));
  SHOW(count);
  SHOW(cuda->get(&device, 0));
  SHOW(cuda->get(&device, 99));
  SHOW(cuda->name(name, sizeof name, device));
  printf("%s\n", name);
  SHOW(cuda->retain(&context, device));
  SHOW(cuda->state(device, &flags, &active));
  SHOW(active);
  SHOW(cuda->allocate(&memory, 8));
  SHOW(cuda->set(context));
  SHOW(cuda->current(&current));
  SHOW(current == context);
  SHOW(cuda->allocate(&memory, 8));
  SHOW(memory != 0 ? cuda->up(memory, "forked", 7) : -1);
  SHOW(memory != 0 ? cuda->down(back, memory, 7) : -1);
  printf("%s\n", back);
  if (!on_real_driver) {
    SHOW(cuda->launch((void*)0x100000001, 1, 2, 3, 4, 5, 6, 7, (void*)0x200000008, parameters, (void**)0x30000000a));
  }
  SHOW(sum);
  SHOW(cuda->synchronise());
  SHOW(memory != 0 ? cuda->release(memory) : -1);
}

static void use_in_child(const struct functions* cuda) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    use(cuda);
    use(cuda); /* calls each function a second time */
    fflush(stdout);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  printf("the child ended with %d\n", status);
}

#ifdef LINKED
static void* use_in_thread(void* cuda) {
  use(cuda);
  return NULL;
}
#endif

static void* find(void* driver, const char* name) {
  void* const found = dlsym(driver, name);
  if (found == NULL) printf("%s: none\n", name);
  return found;
}

static struct functions by_dlsym(void* driver) {
  struct functions cuda;
  *(void**)&cuda.init = find(driver, "cuInit");
  *(void**)&cuda.count = find(driver, "cuDeviceGetCount");
  *(void**)&cuda.get = find(driver, "cuDeviceGet");
  *(void**)&cuda.name = find(driver, "cuDeviceGetName");
  *(void**)&cuda.retain = find(driver, "cuDevicePrimaryCtxRetain");
  *(void**)&cuda.state = find(driver, "cuDevicePrimaryCtxGetState");
  *(void**)&cuda.set = find(driver, "cuCtxSetCurrent");
  *(void**)&cuda.current = find(driver, "cuCtxGetCurrent");
  *(void**)&cuda.allocate = find(driver, "cuMemAlloc_v2");
  *(void**)&cuda.release = find(driver, "cuMemFree_v2");
  *(void**)&cuda.up = find(driver, "cuMemcpyHtoD_v2");
  *(void**)&cuda.down = find(driver, "cuMemcpyDtoH_v2");
  *(void**)&cuda.synchronise = find(driver, "cuCtxSynchronize");
  *(void**)&cuda.launch = find(driver, "cuLaunchKernel");
  return cuda;
}

static struct functions by_proc_address(void* driver) {
  static const char* const names[] = {"cuInit",
                                      "cuDeviceGetCount",
                                      "cuDeviceGet",
                                      "cuDeviceGetName",
                                      "cuDevicePrimaryCtxRetain",
                                      "cuDevicePrimaryCtxGetState",
                                      "cuCtxSetCurrent",
                                      "cuCtxGetCurrent",
                                      "cuMemAlloc",
                                      "cuMemFree",
                                      "cuMemcpyHtoD",
                                      "cuMemcpyDtoH",
                                      "cuCtxSynchronize",
                                      "cuLaunchKernel"};
  CUresult (*get)(const char*, void**, int, uint64_t, int*) = NULL;
  CUresult (*old)(const char*, void**, int, uint64_t) = NULL;
  struct functions cuda;
  void* found = NULL;
  int what = -1;
  *(void**)&old = find(driver, "cuGetProcAddress");
  SHOW(old("cuGetProcAddress", (void**)&get, 12000, 0));
  SHOW(get("cuNothing", &found, 12000, 0, &what));
  SHOW(what);
  SHOW(found == NULL);
  if (!on_real_driver) { /* NVIDIA's driver 580.159 crashes here even without the shim */
    SHOW(get(NULL, &found, 12000, 0, NULL));
    SHOW(get("cuInit", NULL, 12000, 0, NULL));
  }
  void** const out = (void**)&cuda;
  for (unsigned i = 0; i < sizeof names / sizeof *names; ++i) SHOW(get(names[i], &out[i], 12000, 0, &what));
  /* A second call with the same name must give the same function. */
  SHOW(get("cuMemAlloc", &found, 12000, 0, NULL));
  SHOW(found == *(void**)&cuda.allocate);
  return cuda;
}

#ifdef LINKED
static const struct functions linked = {cuInit,
                                        cuDeviceGetCount,
                                        cuDeviceGet,
                                        cuDeviceGetName,
                                        cuDevicePrimaryCtxRetain,
                                        cuDevicePrimaryCtxGetState,
                                        cuCtxSetCurrent,
                                        cuCtxGetCurrent,
                                        cuMemAlloc_v2,
                                        cuMemFree_v2,
                                        cuMemcpyHtoD_v2,
                                        cuMemcpyDtoH_v2,
                                        cuCtxSynchronize,
                                        cuLaunchKernel};
#endif

int main(int argc, char** argv) {
  on_real_driver = argc > 1 && strcmp(argv[1], "real") == 0;
#if defined LINKED
  use_in_child(&linked);
  use(&linked);
  use_in_child(&linked);
  pthread_t thread;
  pthread_create(&thread, NULL, use_in_thread, (void*)&linked);
  pthread_join(thread, NULL);
  printf("in the program's scope: %d\n", dlsym(RTLD_DEFAULT, "cuInit") != NULL);
  use_in_child(&linked);
#elif defined OPENED
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == NULL) abort();
  const struct functions cuda = by_dlsym(driver);
  const struct functions others = by_proc_address(driver);
  printf("in the program's scope: %d\n", dlsym(RTLD_DEFAULT, "cuInit") != NULL);
  printf("the same again: %d\n", dlsym(driver, "cuInit") == *(void**)&cuda.init);
  use_in_child(&others);
  use(&cuda);
  use(&others);
  use_in_child(&cuda);
  use_in_child(&others);
#else
  printf("in the program's scope: %d\n", dlsym(RTLD_DEFAULT, "cuInit") != NULL);
#endif
  return 7;
}
