// A library that uses OpenMP, and so keeps a thread pool of libgomp. If a thread has used the library and forks, the
// child hangs when it uses the library.
#include <forksight/fork_test.h>

static int use(void) {
  int sum = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
  for (int i = 0; i < 100; ++i) sum += i;
  return sum == 4950 ? 0 : 1;
}

FORKSIGHT_FORK_TEST(use)
