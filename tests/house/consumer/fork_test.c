#include <forksight/fork_test.h>

/* Works only in the process that used it first. */
static int use(void) {
  static pid_t first;
  if (first == 0) first = getpid();
  return first == getpid() ? 0 : 1;
}

FORKSIGHT_FORK_TEST(use)
