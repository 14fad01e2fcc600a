// Mechanism: as in lost_openmp_pool.c, but with the default team: no clause sets a number of threads. Each thread of
//            the team counts itself.
// To blame:  fork() after a parallel region of libgomp in the same thread.
// User sees: the child stops at the end of its first parallel region.
// Fix:       call omp_pause_resource_all(omp_pause_hard) before the fork, fork before any region, or exec in the child.
// Repaired:  the child asks for a team of one thread, which needs no pool.
//
// EXPECT-BARE: hang
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 3 threads" victims=1
// EXPECT-STACK: culprit count_threads@region main@parent
// EXPECT-STACK: stack count_threads@region main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CURED: --omp=quiesce stdout="parent: 3 threads" stdout="child: 3 threads"
// EXPECT-CURED: --omp=rebuild stdout="parent: 3 threads" stdout="child: 3 threads"
// EXPECT-CURED: --omp=clamp stdout="parent: 3 threads" stdout="child: 1 threads"
// EXPECT-CORE: lost-openmp-pool proven hang
#include <omp.h>

#include "../baton.h"

__attribute__((noinline)) static int count_threads(const char* who) {
  int threads = 0;
#pragma omp parallel  // MARK: region
  {
#pragma omp atomic
    ++threads;
  }
  printf("%s: %d threads\n", who, threads);
  fflush(stdout);
  return threads > 0 ? 0 : 1;
}

int main(void) {
  omp_set_dynamic(0);
  omp_set_num_threads(3);
  int failed = count_threads("parent");  // MARK: parent
  const pid_t child = fork();            // MARK: fork
  if (child == 0) {
#ifdef REPAIRED
    omp_set_num_threads(1);
#endif
    failed = count_threads("child");  // MARK: child
    _exit(failed);
  }
  return failed != 0 ? failed : end_of(child);
}
