// Mechanism: the parent runs a region of four threads, so its libgomp pool has workers. Then the parent sets the number
//            of threads to one, as a protection, and forks. A region of the child asks for four threads by a clause.
//            libgomp waits for the workers of the parent's pool, but fork() did not copy these workers.
// To blame:  omp_set_num_threads(1) as a protection. A num_threads() clause overrides this setting.
// User sees: one region of the child hangs, at 0 % CPU. The regions without a num_threads() clause end normally.
// Fix:       call omp_pause_resource_all(omp_pause_hard) before the fork, fork before any region, or exec in the child.
// Repaired:  no region of the child has a num_threads() clause.
//
// EXPECT-BARE: hang
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 4 threads" victims=1
// EXPECT-STACK: culprit count_threads@region main@warm
// EXPECT-STACK: stack count_threads@region main@child
// EXPECT-CURED: --omp=quiesce stdout="child: 4 threads"
// EXPECT-CURED: --omp=rebuild stdout="child: 4 threads"
// EXPECT-CURED: --omp=clamp stdout="child: 1 threads"
//
// LLVM's runtime makes a new pool in the child:
// EXPECT-BARE(libomp): ok
// EXPECT-NONE(libomp)
// EXPECT-BARE(libomp19): ok
// EXPECT-NONE(libomp19)
#include <omp.h>

#include "../baton.h"

__attribute__((noinline)) static int count_threads(int wanted) {
  int threads = 0;
#pragma omp parallel num_threads(wanted)  // MARK: region
  {
#pragma omp atomic
    ++threads;
  }
  return threads;
}

__attribute__((noinline)) static int count_threads_of_default(void) {
  int threads = 0;
#pragma omp parallel
  {
#pragma omp atomic
    ++threads;
  }
  return threads;
}

int main(void) {
  if (count_threads(4) != 4) return 2;  // MARK: warm
  omp_set_num_threads(1);
  const pid_t child = fork();
  if (child == 0) {
    int threads = count_threads_of_default();
#ifndef REPAIRED
    threads = count_threads(4);  // MARK: child
#endif
    printf("child: %d threads\n", threads);
    fflush(stdout);
    _exit(0);
  }
  return end_of(child);
}
