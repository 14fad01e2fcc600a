// Mechanism: as in lost_openmp_pool.c. But the forking thread has changed OpenMP's settings, and forks inside of a
//            teams region with a thread limit. If a cure lost these settings, the child could compute another result.
// To blame:  fork() after a parallel region of libgomp in the same thread.
// User sees: the child stops at the end of its first parallel region.
// Fix:       call omp_pause_resource_all(omp_pause_hard) before the fork, fork before any region, or exec in the child.
// Repaired:  the pool is paused before the fork.
//
// EXPECT-BARE: hang
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 3 threads" victims=1
// EXPECT-STACK: fork main@fork
// EXPECT-CURED: --omp=rebuild stdout="child: schedule 3,7 limit 3 nested 4 dynamic 0 ask 5, team of 3"
// EXPECT-CURED: --omp=quiesce stdout="child: schedule 3,7 limit 3 nested 4 dynamic 0 ask 5, team of 3"
// EXPECT-CURED: --cure=auto stdout="child: schedule 3,7 limit 3 nested 4 dynamic 0 ask 5, team of 3"
// EXPECT-CURED(repaired): --cure=auto stdout="child: schedule 3,7 limit 3 nested 4 dynamic 0 ask 5, team of 3"
// EXPECT-CORE: lost-openmp-pool proven hang culprit="libgomp pool of 3 threads"
#include <omp.h>

#include "../baton.h"

__attribute__((noinline)) static int count_threads(void) {
  int threads = 0;
#pragma omp parallel
  {
#pragma omp atomic
    ++threads;
  }
  return threads;
}

static void show(const char* who) {
  omp_sched_t schedule;
  int chunk;
  omp_get_schedule(&schedule, &chunk);
  printf("%s: schedule %d,%d limit %d nested %d dynamic %d ask %d", who, (int)schedule, chunk, omp_get_thread_limit(),
         omp_get_max_active_levels(), omp_get_dynamic(), omp_get_max_threads());
  printf(", team of %d\n", count_threads());
  fflush(stdout);
}

// This is a separate function because the compiler rejects the call directly inside of a teams region.
__attribute__((noinline)) static void pause_pool(void) {
#ifdef REPAIRED
  omp_pause_resource_all(omp_pause_hard);
#endif
}

int main(void) {
  int status = 1;
  omp_set_dynamic(0);
  omp_set_schedule(omp_sched_guided, 7);
  omp_set_max_active_levels(4);
  omp_set_num_threads(5);
#pragma omp teams num_teams(1) thread_limit(3) shared(status)
  {
    show("parent");
    pause_pool();
    const pid_t child = fork();  // MARK: fork
    if (child == 0) {
      show("child");
      _exit(0);
    }
    status = end_of(child);
  }
  return status;
}
