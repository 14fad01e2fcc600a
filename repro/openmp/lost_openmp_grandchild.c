// Mechanism: a process has a pool of libgomp and forks. Its child starts no region, and forks again. The grandchild has
//            a copy of the pool, but the pool's threads exist only in the grandparent.
// To blame:  fork() after a parallel region of the grandparent.
// User sees: the grandchild stops in its first region.
// Fix:       end the pool before the first fork: omp_pause_resource_all(omp_pause_hard).
// Repaired:  the pool is ended before the first fork.
//
// EXPECT-BARE: hang
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" victims=2
// EXPECT-STACK: stack count_threads@region main@grandchild
// EXPECT-CURED: --omp=quiesce stdout="grandchild: 2 threads"
// EXPECT-CURED: --omp=rebuild stdout="grandchild: 2 threads"
#include <omp.h>

#include "../baton.h"

__attribute__((noinline)) static int count_threads(void) {
  int threads = 0;
#pragma omp parallel num_threads(2)  // MARK: region
  {
#pragma omp atomic
    ++threads;
  }
  return threads;
}

int main(void) {
  if (count_threads() != 2) return 1;
#ifdef REPAIRED
  omp_pause_resource_all(omp_pause_hard);
#endif
  const pid_t child = fork();
  if (child == 0) {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      const int threads = count_threads();  // MARK: grandchild
      printf("grandchild: %d threads\n", threads);
      fflush(stdout);
      _exit(threads == 2 ? 0 : 1);
    }
    _exit(end_of(grandchild));
  }
  return end_of(child);
}
