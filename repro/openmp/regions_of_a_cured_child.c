// Mechanism: as in lost_openmp_default_team.c. A cured child then uses the other parts of OpenMP: nested regions,
//            tasks, a region in a thread of its own, dynamic teams, and a second fork.
// To blame:  fork() after a parallel region of libgomp in the same thread.
// User sees: the child stops at the end of its first parallel region.
// Fix:       call omp_pause_resource_all(omp_pause_hard) before the fork, fork before any region, or exec in the child.
// Repaired:  the pool is paused before each fork.
//
// EXPECT-BARE: hang
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 3 threads" victims=1
// EXPECT-CURED: --omp=rebuild stdout="child: 6, 55, 3" stdout="grandchild: 6, 55, 3"
// EXPECT-CURED: --omp=quiesce stdout="child: 6, 55, 3" stdout="grandchild: 6, 55, 3"
// EXPECT-CURED: --omp=clamp stdout="child: 1, 55, 3" stdout="grandchild: 1, 55, 3"
// EXPECT-CURED: --cure=auto stdout="child: 6, 55, 3" stdout="grandchild: 6, 55, 3"
// EXPECT-CURED(repaired): --cure=auto stdout="child: 6, 55, 3" stdout="grandchild: 6, 55, 3"
// EXPECT-CORE: lost-openmp-pool proven hang
#include <omp.h>
#include <pthread.h>

#include "../baton.h"

__attribute__((noinline)) static int count_nested(void) {
  int threads = 0;
#pragma omp parallel num_threads(3)
#pragma omp parallel num_threads(2)
  {
#pragma omp atomic
    ++threads;
  }
  return threads;
}

static int fibonacci(int n) {
  if (n < 2) return n;
  int one;
  int other;
#pragma omp task shared(one)
  one = fibonacci(n - 1);
#pragma omp task shared(other)
  other = fibonacci(n - 2);
#pragma omp taskwait
  return one + other;
}

__attribute__((noinline)) static int run_tasks(void) {
  int result = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
  result = fibonacci(10);
  return result;
}

static void* thread_main(void* threads) {
#pragma omp parallel num_threads(3)
  {
#pragma omp atomic
    ++*(int*)threads;
  }
  return NULL;
}

static void use_all(const char* who) {
  pthread_t thread;
  int threads = 0;
  const int nested = count_nested();
  const int tasks = run_tasks();
  pthread_create(&thread, NULL, thread_main, &threads);
  pthread_join(thread, NULL);
  printf("%s: %d, %d, %d\n", who, nested, tasks, threads);
  fflush(stdout);
}

static void pause_pool(void) {
#ifdef REPAIRED
  omp_pause_resource_all(omp_pause_hard);
#endif
}

int main(void) {
  omp_set_max_active_levels(2);
  omp_set_num_threads(3);
  use_all("parent");
  pause_pool();
  const pid_t child = fork();
  if (child != 0) return end_of(child);
  use_all("child");
  omp_set_dynamic(1);
#pragma omp parallel
  if (omp_get_num_threads() < 1) abort();
  omp_set_dynamic(0);
  pause_pool();
  const pid_t grandchild = fork();
  if (grandchild != 0) _exit(end_of(grandchild));
  use_all("grandchild");
  _exit(0);
}
