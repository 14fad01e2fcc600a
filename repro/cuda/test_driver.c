// A test driver: a libcuda.so.1 without a device. This driver has the entry points that the cases use. It counts how
// often each primary context is retained. Its device memory comes from malloc(). If a process has initialised the
// driver, forked children of that process get CUDA_ERROR_NOT_INITIALIZED, as from the real driver. The only exceptions
// are calls that need no initialised driver, such as cuDriverGetVersion. The only kernel adds numbers. cuDeviceGetName
// returns a name that says that this is the test driver.
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kVersion = 12020, kDevices = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t initialised_in;  // the process that called cuInit; 0: none
static int retained[kDevices];
static __thread CUcontext current;

// The handle of a context points to this struct.
struct CUctx_st {
  CUdevice device;
};
static struct CUctx_st primary[kDevices] = {{0}, {1}};

// Returns 1 if this process itself has called cuInit, otherwise 0. A call by the parent before the fork does not count.
int test_driver_is_usable(void);
int test_driver_is_usable(void) { return initialised_in == getpid(); }

#define REQUIRE(condition, otherwise)   \
  do {                                  \
    if (!(condition)) return otherwise; \
  } while (0)
#define REQUIRE_INIT() REQUIRE(test_driver_is_usable(), CUDA_ERROR_NOT_INITIALIZED)

CUresult cuInit(unsigned flags) {
  REQUIRE(flags == 0, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(initialised_in == 0 || test_driver_is_usable(), CUDA_ERROR_NOT_INITIALIZED);
  pthread_mutex_lock(&lock);
  initialised_in = getpid();
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  REQUIRE(version != NULL, CUDA_ERROR_INVALID_VALUE);
  *version = kVersion;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  REQUIRE_INIT();
  REQUIRE(count != NULL, CUDA_ERROR_INVALID_VALUE);
  *count = kDevices;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  REQUIRE_INIT();
  REQUIRE(device != NULL, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(ordinal >= 0 && ordinal < kDevices, CUDA_ERROR_INVALID_DEVICE);
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  REQUIRE_INIT();
  REQUIRE(name != NULL && bytes > 0, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(device >= 0 && device < kDevices, CUDA_ERROR_INVALID_DEVICE);
  strncpy(name, "forksight test driver", (size_t)bytes - 1);
  name[bytes - 1] = '\0';
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  REQUIRE_INIT();
  REQUIRE(context != NULL, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(device >= 0 && device < kDevices, CUDA_ERROR_INVALID_DEVICE);
  pthread_mutex_lock(&lock);
  ++retained[device];
  pthread_mutex_unlock(&lock);
  *context = &primary[device];
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  REQUIRE_INIT();
  REQUIRE(device >= 0 && device < kDevices, CUDA_ERROR_INVALID_DEVICE);
  REQUIRE(retained[device] > 0, CUDA_ERROR_INVALID_CONTEXT);
  pthread_mutex_lock(&lock);
  --retained[device];
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  REQUIRE_INIT();
  REQUIRE(flags != NULL && active != NULL, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(device >= 0 && device < kDevices, CUDA_ERROR_INVALID_DEVICE);
  *flags = 0;
  *active = retained[device] > 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  (void)flags;
  REQUIRE_INIT();
  REQUIRE(context != NULL, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(device >= 0 && device < kDevices, CUDA_ERROR_INVALID_DEVICE);
  CUcontext made = malloc(sizeof *made);
  REQUIRE(made != NULL, CUDA_ERROR_INVALID_VALUE);
  made->device = device;
  current = *context = made;
  return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  REQUIRE_INIT();
  REQUIRE(context != NULL, CUDA_ERROR_INVALID_CONTEXT);
  if (current == context) current = NULL;
  free(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  REQUIRE_INIT();
  REQUIRE(context != NULL, CUDA_ERROR_INVALID_VALUE);
  *context = current;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  REQUIRE_INIT();
  current = context;
  return CUDA_SUCCESS;
}

#define REQUIRE_CONTEXT()                                 \
  do {                                                    \
    REQUIRE_INIT();                                       \
    REQUIRE(current != NULL, CUDA_ERROR_INVALID_CONTEXT); \
  } while (0)

CUresult cuCtxSynchronize(void) {
  REQUIRE_CONTEXT();
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* memory, size_t bytes) {
  REQUIRE_CONTEXT();
  REQUIRE(memory != NULL && bytes > 0, CUDA_ERROR_INVALID_VALUE);
  *memory = (uintptr_t)malloc(bytes);
  return *memory != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFree_v2(CUdeviceptr memory) {
  REQUIRE_CONTEXT();
  free((void*)(uintptr_t)memory);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  REQUIRE_CONTEXT();
  memcpy((void*)(uintptr_t)to, from, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  REQUIRE_CONTEXT();
  memcpy(to, (const void*)(uintptr_t)from, bytes);
  return CUDA_SUCCESS;
}

// Runs the only kernel of this driver. The kernel multiplies each of the ten numbers of its launch by another factor.
// It adds the products, and stores the sum where parameters[0] points. So the sum shows a test whether each number
// arrived in its place.
CUresult cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** parameters,
                        void** extra) {
  REQUIRE_CONTEXT();
  REQUIRE(parameters != NULL && parameters[0] != NULL, CUDA_ERROR_INVALID_VALUE);
  *(uint64_t*)parameters[0] = (uintptr_t)function + 2 * grid_x + 3 * grid_y + 5 * grid_z + 7 * block_x + 11 * block_y +
                              13 * block_z + 17 * shared_bytes + 19 * (uintptr_t)stream + 23 * (uintptr_t)extra;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  REQUIRE(name != NULL, CUDA_ERROR_INVALID_VALUE);
  *name = error == CUDA_SUCCESS                 ? "CUDA_SUCCESS"
          : error == CUDA_ERROR_NOT_INITIALIZED ? "CUDA_ERROR_NOT_INITIALIZED"
                                                : NULL;
  return *name != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  REQUIRE(text != NULL, CUDA_ERROR_INVALID_VALUE);
  *text = error == CUDA_SUCCESS ? "no error" : error == CUDA_ERROR_NOT_INITIALIZED ? "initialization error" : NULL;
  return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Takes the name of a function without its version, as the real cuGetProcAddress does.
static void* find_function(const char* symbol) {
  static const struct {
    const char* name;
    void* function;
  } functions[] = {
      {"cuInit", (void*)cuInit},
      {"cuDriverGetVersion", (void*)cuDriverGetVersion},
      {"cuDeviceGetCount", (void*)cuDeviceGetCount},
      {"cuDeviceGet", (void*)cuDeviceGet},
      {"cuDeviceGetName", (void*)cuDeviceGetName},
      {"cuDevicePrimaryCtxRetain", (void*)cuDevicePrimaryCtxRetain},
      {"cuDevicePrimaryCtxRelease", (void*)cuDevicePrimaryCtxRelease_v2},
      {"cuDevicePrimaryCtxGetState", (void*)cuDevicePrimaryCtxGetState},
      {"cuCtxCreate", (void*)cuCtxCreate_v2},
      {"cuCtxDestroy", (void*)cuCtxDestroy_v2},
      {"cuCtxGetCurrent", (void*)cuCtxGetCurrent},
      {"cuCtxSetCurrent", (void*)cuCtxSetCurrent},
      {"cuCtxSynchronize", (void*)cuCtxSynchronize},
      {"cuMemAlloc", (void*)cuMemAlloc_v2},
      {"cuMemFree", (void*)cuMemFree_v2},
      {"cuMemcpyHtoD", (void*)cuMemcpyHtoD_v2},
      {"cuMemcpyDtoH", (void*)cuMemcpyDtoH_v2},
      {"cuLaunchKernel", (void*)cuLaunchKernel},
      {"cuGetErrorName", (void*)cuGetErrorName},
      {"cuGetErrorString", (void*)cuGetErrorString},
      {"cuGetProcAddress", (void*)cuGetProcAddress_v2},
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
    if (strcmp(functions[i].name, symbol) == 0) return functions[i].function;
  }
  return NULL;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags, int* found) {
  (void)version;
  (void)flags;
  REQUIRE(symbol != NULL && function != NULL, CUDA_ERROR_INVALID_VALUE);
  *function = find_function(symbol);
  if (found != NULL) *found = *function == NULL;  // 0: found, 1: no such symbol
  return *function != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
