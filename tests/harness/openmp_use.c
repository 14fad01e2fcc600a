// A library that keeps a pool of threads: OpenMP's, by GCC. A child of the thread that used it hangs.
#include <forksight/fork_test.h>

static int use(void) {
  int sum = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
  for (int i = 0; i < 100; ++i) sum += i;
  return sum == 4950 ? 0 : 1;
}

FORKSIGHT_FORK_TEST(use)
