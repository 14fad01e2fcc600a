// Several cases about libc's locks keep a thread inside of libc in the same way. The file that libc opens is a FIFO. So
// open() waits until another thread opens the other end, and libc holds its lock meanwhile.
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../baton.h"

// Makes the FIFO `name` below `folder`, and the folders between them.
static inline void make_fifo(const char* folder, const char* name, char path[256]) {
  snprintf(path, 256, "%s/%s", folder, name);
  for (char* at = path + strlen(folder); (at = strchr(at + 1, '/')) != NULL;) {
    *at = '\0';
    mkdir(path, 0700);
    *at = '/';
  }
  if (mkfifo(path, 0600) != 0) abort();
}

// Returns the number of the system call in which the thread is blocked, and stores the second argument of the call in
// `second`. Returns -1 if the thread runs.
static inline long call_of(int tid, unsigned long* second) {
  char name[64], text[256];
  snprintf(name, sizeof name, "/proc/self/task/%d/syscall", tid);
  const int fd = open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) abort();
  const ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  long number;
  unsigned long first;
  text[got < 0 ? 0 : got] = '\0';
  return sscanf(text, "%ld %lx %lx", &number, &first, second) == 3 ? number : -1;
}

// Returns when the thread is blocked in open() of `path`. Polls, without a time limit.
static inline void await_open(int tid, const char* path) {
  unsigned long opened = 0;
  while (call_of(tid, &opened) != SYS_openat || strcmp((const char*)opened, path) != 0) sched_yield();
}
