// Mechanism: a program, the exporter, frees device memory when the importer reports that it has closed the memory. One
//            importer reports that. Another importer is killed while it has memory open, and reports nothing.
// To blame:  an exporter that waits for a message of the importer, and does not notice that the importer has ended.
// User sees: each worker that dies leaves device memory of the exporter allocated. PyTorch calls such memory limbo.
// Fix:       also notice when an importer ends, by its socket or by a pidfd.
// Repaired:  the exporter treats the end of the socket like a report.
//
// EXPECT-BARE: error
// EXPECT: cuda-ipc-limbo likely error culprit="device memory that a dead process had open"
// EXPECT-STACK: culprit import@open
// EXPECT-STACK: stack share@export main@second
#include <signal.h>

#include "ipc.h"

__attribute__((noinline)) static int import(const char* role, int exporter) {
  CUipcMemHandle handle;
  CUdeviceptr memory = 0;
  if (!hear(exporter, &handle, sizeof handle)) return 2;
  initialise();
  if (cuIpcOpenMemHandle_v2(&memory, handle, kLazyPeerAccess) != CUDA_SUCCESS) return 3;  // MARK: open
  if (strcmp(role, "dies") == 0) kill(getpid(), SIGKILL);
  if (cuIpcCloseMemHandle(memory) != CUDA_SUCCESS || !say_word(exporter)) return 4;
  return 0;
}

// Shares memory with the importer, and frees it after the importer's report. Returns 1 if it has freed the memory.
__attribute__((noinline)) static int share(struct peer importer) {
  CUipcMemHandle handle;
  CUdeviceptr memory = 0;
  if (cuMemAlloc_v2(&memory, kBytes) != CUDA_SUCCESS) abort();
  if (cuIpcGetMemHandle(&handle, memory) != CUDA_SUCCESS) abort();  // MARK: export
  if (!say(importer.socket, &handle, sizeof handle)) abort();
  int is_closed = hear_word(importer.socket);
  const int status = end_of(importer.pid);
#ifdef REPAIRED
  is_closed = 1;
#endif
  if (status != (is_closed && status == 0 ? 0 : 128 + SIGKILL)) abort();
  return is_closed && cuMemFree_v2(memory) == CUDA_SUCCESS;
}

int main(int argc, char** argv) {
  if (argc == 3) return import(argv[1], atoi(argv[2]));
  const struct peer first = start("closes");
  const struct peer second = start("dies");
  initialise();
  const int frees_first = share(first);
  const int frees_second = share(second);  // MARK: second
  return frees_first && frees_second ? 0 : 1;
}
