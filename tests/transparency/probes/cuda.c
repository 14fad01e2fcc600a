/* The entry points of the CUDA driver, called by symbol, and dlsym(). The driver is the test driver of repro/cuda. It
 * implements some calls. For each other call it only records the arguments.
 * LIBS: forksight_test_driver
 */
#include "probe.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../../../repro/cuda/driver.h"

extern uint64_t test_driver_words[14];

static void say_words(const char* name, unsigned count) {
  char text[280] = "";
  for (unsigned at = 0; at < count && strlen(text) < 260; ++at) {
    char word[24];
    snprintf(word, sizeof word, " %llx", (unsigned long long)test_driver_words[at]);
    strcat(text, word);
  }
  say("%s got%s", name, text);
}

/* Words of 64 bits, each different. */
#define WORD(n) (0x8100000000000081ULL + 0x0101010101010101ULL * (n))
#define SHOW_WORDS(count, name)                                                  \
  do {                                                                           \
    extern int name(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t); \
    memset(test_driver_words, 0, sizeof test_driver_words);                      \
    SHOW(name(WORD(1), WORD(2), WORD(3), WORD(4), WORD(5), WORD(6)));            \
    say_words(#name, count);                                                     \
  } while (0)

static void call_all(void) {
  SHOW_WORDS(6, cuDeviceGetAttribute);
  SHOW_WORDS(6, cuDeviceTotalMem_v2);
  SHOW_WORDS(6, cuCtxCreate_v3);
  SHOW_WORDS(6, cuCtxCreate_v4);
  SHOW_WORDS(6, cuCtxPushCurrent_v2);
  SHOW_WORDS(6, cuCtxGetDevice);
  SHOW_WORDS(6, cuModuleLoad);
  SHOW_WORDS(6, cuModuleLoadData);
  SHOW_WORDS(6, cuModuleLoadDataEx);
  SHOW_WORDS(6, cuModuleLoadFatBinary);
  SHOW_WORDS(6, cuModuleGetFunction);
  SHOW_WORDS(6, cuLibraryLoadData);
  SHOW_WORDS(6, cuMemAllocPitch_v2);
  SHOW_WORDS(6, cuMemAllocManaged);
  SHOW_WORDS(6, cuMemAllocHost_v2);
  SHOW_WORDS(6, cuMemHostAlloc);
  SHOW_WORDS(6, cuMemHostRegister_v2);
  SHOW_WORDS(6, cuMemAllocAsync);
  SHOW_WORDS(6, cuMemCreate);
  SHOW_WORDS(6, cuMemGetInfo_v2);
  SHOW_WORDS(6, cuMemcpy);
  SHOW_WORDS(6, cuMemcpyAsync);
  SHOW_WORDS(6, cuMemcpyDtoD_v2);
  SHOW_WORDS(6, cuMemcpyHtoDAsync_v2);
  SHOW_WORDS(6, cuMemcpyDtoHAsync_v2);
  SHOW_WORDS(6, cuMemcpyDtoDAsync_v2);
  SHOW_WORDS(6, cuMemsetD8_v2);
  SHOW_WORDS(6, cuMemsetD32_v2);
  SHOW_WORDS(6, cuMemsetD8Async);
  SHOW_WORDS(6, cuMemsetD32Async);
  SHOW_WORDS(6, cuLaunchKernelEx);
  SHOW_WORDS(6, cuGraphLaunch);
  SHOW_WORDS(6, cuStreamCreate);
  SHOW_WORDS(6, cuStreamCreateWithPriority);
  SHOW_WORDS(6, cuStreamSynchronize);
  SHOW_WORDS(6, cuStreamWaitEvent);
  SHOW_WORDS(6, cuEventCreate);
  SHOW_WORDS(6, cuEventRecord);
  SHOW_WORDS(6, cuEventSynchronize);
  SHOW_WORDS(6, cuIpcGetMemHandle);
  SHOW_WORDS(6, cuIpcCloseMemHandle);
  SHOW_WORDS(6, cuDevicePrimaryCtxReset_v2);
  SHOW_WORDS(6, cuPointerGetAttribute);
}

static void call_own(void) {
  CUdevice device = -1;
  CUcontext context = NULL;
  CUdeviceptr memory = 0;
  CUresult (*allocate)(CUdeviceptr*, size_t) = NULL;
  char text[32] = "";
  int count = -1;
  uint64_t sum = 0;
  void* parameters[] = {&sum};
  SHOW(cuDeviceGetCount(&count));
  SHOW(cuInit(0));
  SHOW(cuDeviceGetCount(&count));
  SHOW(count);
  SHOW(cuDeviceGet(&device, 1));
  SHOW(cuDeviceGetName(text, sizeof text, 0));
  SHOW(cuDevicePrimaryCtxRetain(&context, 1));
  SHOW(cuCtxSetCurrent(context));
  SHOW(cuCtxGetCurrent(&context) == 0 ? context != NULL : -1);
  SHOW(cuCtxSynchronize());
  SHOW(cuMemAlloc_v2(&memory, 16));
  if (memory != 0) {
    SHOW(cuMemcpyHtoD_v2(memory, "words", 6));
    SHOW(cuMemcpyDtoH_v2(text, memory, 6));
    say("%s", text);
    SHOW(cuMemFree_v2(memory));
  }
  SHOW(cuLaunchKernel((void*)0x100000001, 1, 2, 3, 4, 5, 6, 7, (void*)0x200000008, parameters, (void**)0x30000000a));
  SHOW(sum);
  SHOW(cuGetProcAddress("cuMemAlloc", (void**)&allocate, 12000, 0));
  SHOW(cuGetProcAddress_v2("cuMemAlloc", (void**)&allocate, 12000, 0, &count));
  SHOW(allocate != NULL ? allocate(&memory, 0) : -1);
  SHOW(cuCtxCreate_v2(&context, 0, 0));
  SHOW(context != NULL ? cuCtxDestroy_v2(context) : -1);
  SHOW(cuDevicePrimaryCtxRelease_v2(1));
  SHOW(cuDevicePrimaryCtxRelease_v2(1));
}

static void call_ten(void) {
  extern int cuLaunchCooperativeKernel(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                                       uint64_t, uint64_t);
  memset(test_driver_words, 0, sizeof test_driver_words);
  SHOW(cuLaunchCooperativeKernel(WORD(1), WORD(2), WORD(3), WORD(4), WORD(5), WORD(6), WORD(7), WORD(8), WORD(9),
                                 WORD(10)));
  say_words("cuLaunchCooperativeKernel", 10);
}

/* A handle is passed by value, so it lies on the stack. The other arguments are in registers. */
struct handle {
  uint64_t words[8];
};

static void call_with_handle(void) {
  extern int cuIpcOpenMemHandle_v2(uint64_t*, struct handle, unsigned);
  const struct handle handle = {{WORD(7), WORD(8), WORD(9), WORD(10), WORD(11), WORD(12), WORD(13), WORD(14)}};
  uint64_t memory = 0;
  memset(test_driver_words, 0, sizeof test_driver_words);
  SHOW(cuIpcOpenMemHandle_v2(&memory, handle, 1));
  for (unsigned at = 0; at < 8; ++at) say("%llx", (unsigned long long)test_driver_words[6 + at]);
  memset(test_driver_words, 0, sizeof test_driver_words);
  SHOW(cuIpcOpenMemHandle_v2((uint64_t*)WORD(1), handle, 1));
  say("%llx", (unsigned long long)test_driver_words[13]);
}

PROBE(before_init) { call_all(); }
PROBE(functions_of_the_test_driver) { call_own(); }
PROBE(words) {
  SHOW(cuInit(0));
  call_all();
  call_ten();
  call_with_handle();
}
/* Calls that the driver refuses in a child. */
PROBE(child_of_an_initialised_process) {
  SHOW(cuInit(0));
  in_child(call_own);
  in_child(call_all);
  in_child(call_ten);
  in_child(call_with_handle);
}

PROBE(dlsym_by_handle) {
  void* const self = dlopen(NULL, RTLD_NOW);
  SHOW(dlsym(self, "cuInit") == (void*)cuInit);
  SHOW(dlsym(RTLD_DEFAULT, "cuInit") == (void*)cuInit);
  SHOW(dlsym(RTLD_DEFAULT, "cuNothing") != NULL);
  SHOW(dlerror() != NULL);
  SHOW(dlsym(RTLD_DEFAULT, "getpid") != NULL);
  SHOW(dlsym(RTLD_NEXT, "getpid") != NULL);
  SHOW(dlsym(RTLD_NEXT, "c") != NULL);
  SHOW(dlsym(self, "") != NULL);
}
