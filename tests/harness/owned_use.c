// A library that works in the process that used it first, and says so elsewhere. -DNOWHERE: nowhere.
#include <forksight/fork_test.h>

static int use(void) {
  static pid_t first;
#ifdef NOWHERE
  return 7;
#endif
  if (first == 0) first = getpid();
  return first == getpid() ? 0 : 5;
}

FORKSIGHT_FORK_TEST(use)
