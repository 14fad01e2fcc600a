// Mechanism: a program exports device memory, and another program opens the handle. The first program frees the memory
//            while the other one has it open.
// To blame:  cuMemFree before every importer has called cuIpcCloseMemHandle. CUDA does not define the result.
// User sees: wrong data, an illegal address in the importer, or no effect for a long time. The test driver ends the
//            program.
// Fix:       importers report that they have closed the memory, and the exporter frees it after that.
// Repaired:  the exporter asks the importer to close the memory, and frees it after the answer.
//
// EXPECT-BARE: error
// EXPECT: cuda-ipc-exporter-gone proven corruption culprit="device memory of another process"
// EXPECT-STACK: culprit main@free
// EXPECT-STACK: stack import@open
#include "ipc.h"

__attribute__((noinline)) static int import(int exporter) {
  CUipcMemHandle handle;
  CUdeviceptr memory = 0;
  char bytes[16];
  if (!hear(exporter, &handle, sizeof handle)) return 2;
  initialise();
  if (cuIpcOpenMemHandle_v2(&memory, handle, kLazyPeerAccess) != CUDA_SUCCESS) return 3;  // MARK: open
  if (cuMemcpyDtoH_v2(bytes, memory, sizeof bytes) != CUDA_SUCCESS || strcmp(bytes, "shared") != 0) return 4;
  if (!say_word(exporter)) return 5;
  const int is_asked = hear_word(exporter);
  if (cuIpcCloseMemHandle(memory) != CUDA_SUCCESS) return 6;
  if (is_asked && !say_word(exporter)) return 7;
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 3) return import(atoi(argv[2]));
  const struct peer importer = start("importer");
  CUipcMemHandle handle;
  CUdeviceptr memory = 0;
  initialise();
  if (cuMemAlloc_v2(&memory, kBytes) != CUDA_SUCCESS || cuMemcpyHtoD_v2(memory, "shared", 7) != CUDA_SUCCESS) return 2;
  if (cuIpcGetMemHandle(&handle, memory) != CUDA_SUCCESS) return 3;
  if (!say(importer.socket, &handle, sizeof handle) || !hear_word(importer.socket)) return 4;
#ifdef REPAIRED
  if (!say_word(importer.socket) || !hear_word(importer.socket)) return 5;
#endif
  if (cuMemFree_v2(memory) != CUDA_SUCCESS) return 6;  // MARK: free
  shutdown(importer.socket, SHUT_RDWR);
  return end_of(importer.pid);
}
