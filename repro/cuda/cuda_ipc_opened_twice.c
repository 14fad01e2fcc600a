// Mechanism: a program opens the handle that comes with each message, although it has that memory open already. Every
//            driver refuses the second open in another context of the process. Drivers before CUDA 11 also refuse it in
//            the same context, because they do not count how often memory is open. The test driver refuses both. This
//            case stays in the same context.
// To blame:  an importer that keeps no table of the memory that it has open.
// User sees: the second open returns 208 (already mapped) or 201 (invalid context).
// Fix:       open the handle once, count its users, and close it when the last user has finished.
// Repaired:  the program uses the first pointer again.
//
// EXPECT-BARE: error
// EXPECT: cuda-ipc-opened-twice proven error culprit="device memory of another process"
// EXPECT-STACK: culprit import@first
// EXPECT-STACK: stack import@again
#include "ipc.h"

__attribute__((noinline)) static int import(int exporter) {
  CUipcMemHandle handle;
  CUdeviceptr memory = 0;
  CUdeviceptr again = 0;
  if (!hear(exporter, &handle, sizeof handle)) return 2;
  initialise();
  if (cuIpcOpenMemHandle_v2(&memory, handle, kLazyPeerAccess) != CUDA_SUCCESS) return 3;  // MARK: first
#ifdef REPAIRED
  again = memory;
#else
  const CUresult answer = cuIpcOpenMemHandle_v2(&again, handle, kLazyPeerAccess);  // MARK: again
  if (answer != CUDA_SUCCESS) again = 0;
#endif
  if (cuIpcCloseMemHandle(memory) != CUDA_SUCCESS || !say_word(exporter)) return 4;
  return again == memory ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc == 3) return import(atoi(argv[2]));
  const struct peer importer = start("importer");
  CUipcMemHandle handle;
  CUdeviceptr memory = 0;
  initialise();
  if (cuMemAlloc_v2(&memory, kBytes) != CUDA_SUCCESS || cuIpcGetMemHandle(&handle, memory) != CUDA_SUCCESS) return 2;
  if (!say(importer.socket, &handle, sizeof handle) || !hear_word(importer.socket)) return 3;
  if (cuMemFree_v2(memory) != CUDA_SUCCESS) return 4;
  return end_of(importer.pid);
}
