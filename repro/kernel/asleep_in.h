// Waits until a child sleeps in a given system call, as /proc/PID/syscall shows.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "../baton.h"

static inline sigset_t set_of(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}

static inline int is_in(pid_t child, long number) {
  char path[64];
  char text[16] = "";
  snprintf(path, sizeof path, "/proc/%d/syscall", child);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, text, sizeof text - 1) < 0) abort();
  close(fd);
  return text[0] >= '0' && text[0] <= '9' && strtol(text, NULL, 10) == number;
}

static inline void wait_until_in(pid_t child, long number) {
  while (!is_in(child, number)) sched_yield();
}
