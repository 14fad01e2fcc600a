// Mechanism: a program, the importer, opens device memory of another program, the exporter. The exporter ends. The
//            importer goes on, and uses the memory.
// To blame:  an exporter that ends before its importers have closed the memory. The memory is freed when the exporter
//            ends.
// User sees: an illegal address, or wrong data, in the importer. The test driver ends the program.
// Fix:       the exporter waits for its importers, or shares memory whose users the driver counts (cuMemCreate).
// Repaired:  the exporter waits until the importer has closed the memory.
//
// EXPECT-BARE: error
// EXPECT: cuda-ipc-exporter-gone proven corruption culprit="device memory of another process"
// EXPECT-STACK: culprit produce@export
// EXPECT-STACK: stack consume@open
#include "ipc.h"

__attribute__((noinline)) static int produce(int consumer) {
  CUipcMemHandle handle;
  CUdeviceptr memory = 0;
  initialise();
  if (cuMemAlloc_v2(&memory, kBytes) != CUDA_SUCCESS || cuMemcpyHtoD_v2(memory, "shared", 7) != CUDA_SUCCESS) return 2;
  if (cuIpcGetMemHandle(&handle, memory) != CUDA_SUCCESS) return 3;  // MARK: export
  if (!say(consumer, &handle, sizeof handle) || !hear_word(consumer)) return 4;
#ifdef REPAIRED
  if (!say_word(consumer) || !hear_word(consumer)) return 5;
#endif
  return 0;
}

__attribute__((noinline)) static int consume(struct peer producer) {
  CUipcMemHandle handle;
  CUdeviceptr memory = 0;
  char bytes[16];
  initialise();
  if (!hear(producer.socket, &handle, sizeof handle)) return 2;
  if (cuIpcOpenMemHandle_v2(&memory, handle, kLazyPeerAccess) != CUDA_SUCCESS) return 3;  // MARK: open
  if (!say_word(producer.socket)) return 4;
#ifdef REPAIRED
  if (!hear_word(producer.socket)) return 5;
  if (cuMemcpyDtoH_v2(bytes, memory, sizeof bytes) != CUDA_SUCCESS) return 6;
  if (cuIpcCloseMemHandle(memory) != CUDA_SUCCESS || !say_word(producer.socket)) return 7;
  return end_of(producer.pid);
#else
  if (end_of(producer.pid) != 0) return 5;
  if (cuMemcpyDtoH_v2(bytes, memory, sizeof bytes) != CUDA_SUCCESS) return 6;
  return cuIpcCloseMemHandle(memory) == CUDA_SUCCESS ? 0 : 7;
#endif
}

int main(int argc, char** argv) {
  if (argc == 3) return produce(atoi(argv[2]));
  return consume(start("producer"));
}
