#include <forksight/fork_test.h>

/* Stands for a function of a library that succeeds only in the process that called it first, not in a forked child. */
static int use(void) {
  static pid_t first;
  if (first == 0) first = getpid();
  return first == getpid() ? 0 : 1;
}

FORKSIGHT_FORK_TEST(use)
