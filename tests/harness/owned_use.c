// A library that works only in the process that used it first. In other processes it returns an error. With -DNOWHERE
// it returns an error in every process.
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
