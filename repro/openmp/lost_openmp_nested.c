// Mechanism: a parallel region contains another one. Each thread of the outer team makes a team of its own. fork()
//            copies libgomp's record of the outer team, but not the outer team's worker. The child's outer region waits
//            for that worker.
// To blame:  fork() after a parallel region of libgomp in the same thread.
// User sees: the child stops in its first region, at 0 % CPU.
// Fix:       call omp_pause_resource_all(omp_pause_hard) before the fork, or fork first.
// Repaired:  the pool is paused before the fork.
//
// EXPECT-BARE: hang
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" victims=1
// EXPECT-STACK: stack count_threads@region main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CURED: --omp=quiesce stdout="parent: 4 threads" stdout="child: 4 threads"
// EXPECT-CURED: --omp=rebuild stdout="parent: 4 threads" stdout="child: 4 threads"
//
// LLVM's runtime makes a new pool in the child:
// EXPECT-BARE(libomp): ok
// EXPECT-NONE(libomp)
// EXPECT-BARE(libomp19): ok
// EXPECT-NONE(libomp19)
#include <omp.h>

#include "../baton.h"

__attribute__((noinline)) static int count_threads(const char* who) {
  int threads = 0;
  omp_set_max_active_levels(2);  // LLVM's runtime resets this setting in the child
#pragma omp parallel num_threads(2)  // MARK: region
  {
#pragma omp parallel num_threads(2)
    {
#pragma omp atomic
      ++threads;
    }
  }
  printf("%s: %d threads\n", who, threads);
  fflush(stdout);
  return threads == 4 ? 0 : 1;
}

int main(void) {
  int failed = count_threads("parent");
#ifdef REPAIRED
  omp_pause_resource_all(omp_pause_hard);
#endif
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    failed = count_threads("child");  // MARK: child
    _exit(failed);
  }
  return failed | end_of(child);
}
