// Mechanism: a program opens a handle that it has made itself. That happens if an item of a queue comes back to the
//            process that sent it.
// To blame:  the open. A handle is for other processes. This process already has the pointer to the memory.
// User sees: cuIpcOpenMemHandle returns 201 (invalid context), although the contexts of the program are valid.
// Fix:       compare the sender's pid with the pid of the calling process. If the pids are equal, use the pointer.
// Repaired:  the program uses the pointer.
//
// EXPECT-BARE: error
// EXPECT: cuda-ipc-same-process proven error culprit="device memory of its own"
// EXPECT-STACK: culprit main@export
// EXPECT-STACK: stack take@open main@take
#include "ipc.h"

struct item {
  CUipcMemHandle handle;
  pid_t sender;
  CUdeviceptr here;
};

__attribute__((noinline)) static CUresult take(const struct item* item, CUdeviceptr* memory) {
#ifdef REPAIRED
  if (item->sender == getpid()) {
    *memory = item->here;
    return CUDA_SUCCESS;
  }
#endif
  const CUresult answer = cuIpcOpenMemHandle_v2(memory, item->handle, kLazyPeerAccess);  // MARK: open
  return answer;
}

int main(void) {
  struct item item = {.sender = getpid()};
  CUdeviceptr memory = 0;
  char bytes[16];
  initialise();
  if (cuMemAlloc_v2(&item.here, kBytes) != CUDA_SUCCESS) return 2;
  if (cuMemcpyHtoD_v2(item.here, "shared", 7) != CUDA_SUCCESS) return 3;
  if (cuIpcGetMemHandle(&item.handle, item.here) != CUDA_SUCCESS) return 4;  // MARK: export
  const CUresult answer = take(&item, &memory);                              // MARK: take
  if (answer != CUDA_SUCCESS) return answer == CUDA_ERROR_INVALID_CONTEXT ? 1 : 5;
  if (cuMemcpyDtoH_v2(bytes, memory, sizeof bytes) != CUDA_SUCCESS || strcmp(bytes, "shared") != 0) return 6;
  return cuMemFree_v2(item.here);
}
