// For the cases with sigwait(): makes a thread that takes SIGTERM. The thread sleeps in sigwait() before main forks.
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "../baton.h"

static struct baton taker_says;
static pid_t taker_tid;

static sigset_t set_of(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}

// Returns 1 if the thread sleeps in sigwait(). Its /proc file `syscall` then begins with 128, the number of
// rt_sigtimedwait.
static int is_taking(void) {
  char path[64];
  char text[8] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/syscall", taker_tid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, text, sizeof text - 1) < 0) abort();
  close(fd);
  return strncmp(text, "128 ", 4) == 0;
}

static void start_taker(void* (*body)(void*)) {
  pthread_t thread;
  taker_says = baton_make();
  if (pthread_create(&thread, NULL, body, NULL) != 0) abort();
  baton_wait(taker_says);
}

static void wait_until_taking(void) {
  while (!is_taking()) sched_yield();
}
