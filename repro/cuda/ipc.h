// For the cases in which two processes share device memory. The case starts its own program again, before it
// initialises CUDA. The two processes send each other messages over a pair of connected sockets. Each process has only
// one of the two sockets open, so it notices when the other process ends.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

// These declarations are from the documentation that driver.h names.
typedef struct {
  char reserved[64];
} CUipcMemHandle;

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr memory);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* memory, CUipcMemHandle handle, unsigned flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr memory);

enum { kBytes = 4096, kLazyPeerAccess = 1 };

struct peer {
  pid_t pid;
  int socket;
};

// The test driver aborts a process that misuses the driver. After this call, such a process leaves no core file.
static inline void no_core(void) {
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

static inline void initialise(void) {
  CUcontext context = NULL;
  no_core();
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    abort();
  }
}

// Starts this program again, with the arguments ROLE and FD (the descriptor of its socket).
static inline struct peer start(const char* role) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) abort();
  const struct peer made = {fork(), ends[0]};
  if (made.pid == 0) {
    char number[16];
    const int own = dup(ends[1]);  // dup() clears close-on-exec, so the new program has this descriptor
    snprintf(number, sizeof number, "%d", own);
    execl("/proc/self/exe", "importer", role, number, (char*)NULL);
    _exit(126);
  }
  close(ends[1]);
  return made;
}

static inline int say(int socket, const void* data, size_t bytes) {
  return send(socket, data, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}
// Receives `bytes` bytes. Returns 1, or 0 if the other process ended before it had sent so many bytes.
static inline int hear(int socket, void* data, size_t bytes) {
  return recv(socket, data, bytes, MSG_WAITALL) == (ssize_t)bytes;
}
static inline int say_word(int socket) { return say(socket, "", 1); }
static inline int hear_word(int socket) {
  char byte;
  return hear(socket, &byte, 1);
}

// Returns the exit status of the process, or 128 + the number of the signal that ended it.
static inline int end_of(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) abort();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
