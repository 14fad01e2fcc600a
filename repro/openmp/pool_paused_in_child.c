// Mechanism: a child handler of fork() ends the OpenMP pool by omp_pause_resource_all(), so that the child can build a
//            new one. In that call libgomp waits for the end of the pool's threads. The child does not have these
//            threads.
// To blame:  the handler. The same call works before the fork, but not after it.
// User sees: fork() does not return in the child, at 0 % CPU. The parent waits for the child.
// Fix:       pause the pool in the prepare handler, which runs in the parent before the fork.
// Repaired:  the prepare handler pauses the pool.
//
// EXPECT-BARE: hang
// EXPECT: atfork-child-stuck proven hang culprit="child handler end_pool (1st of 1)" victims=1
// EXPECT-STACK: fork main@fork
// EXPECT-RUN: --omp=rebuild outcome=cured status=0 rule=lost-openmp-pool stdout="child: 2 threads"
// EXPECT-RUN: --omp=quiesce outcome=cured status=0 rule=lost-openmp-pool stdout="child: 2 threads"
#include <omp.h>
#include <pthread.h>

#include "../baton.h"

static volatile int failed;

__attribute__((noinline)) static void end_pool(void) {
  failed = omp_pause_resource_all(omp_pause_hard);  // MARK: pause
}

__attribute__((noinline)) static int sum(void) {
  int threads = 0;
#pragma omp parallel num_threads(2)
  {
#pragma omp atomic
    ++threads;
  }
  return threads;
}

int main(void) {
#ifdef REPAIRED
  pthread_atfork(end_pool, NULL, NULL);
#else
  pthread_atfork(NULL, NULL, end_pool);
#endif
  if (sum() != 2) return 2;
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    printf("child: %d threads\n", sum());
    fflush(stdout);
    _exit(0);
  }
  return end_of(child);
}
