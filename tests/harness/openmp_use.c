// A library that keeps the thread pool of GCC's OpenMP. If a thread has used the library and forks, the child hangs.
#include <forksight/fork_test.h>

static int use(void) {
  int sum = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
  for (int i = 0; i < 100; ++i) sum += i;
  return sum == 4950 ? 0 : 1;
}

FORKSIGHT_FORK_TEST(use)
