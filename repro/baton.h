// A case uses batons to force an order of events: one thread waits for a baton, and another one passes it. A baton is a
// pipe. Nothing in this file uses a lock. A lock could become a part of a case's defect, or look like a defect to
// forksight.
#pragma once

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct baton {
  int end[2];
};

static inline struct baton baton_make(void) {
  struct baton b;
  if (pipe(b.end) != 0) abort();
  return b;
}

static inline void baton_pass(struct baton b) {
  if (write(b.end[1], "", 1) != 1) abort();
}

static inline void baton_wait(struct baton b) {
  char byte;
  if (read(b.end[0], &byte, 1) != 1) abort();
}

// The calling thread sleeps until its process ends. Only a thread of its own process could wake it, and none does.
static inline void park(void) {
  static int word;
  for (;;) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

// Waits for the child. Returns its exit status, or 128 + the number of the signal that ended it.
static inline int end_of(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) abort();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
