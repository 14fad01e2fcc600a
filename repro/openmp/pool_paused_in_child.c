// Mechanism: a child handler of fork ends the OpenMP pool with omp_pause_resource_all(), so that the child may build a new
//            one. libgomp waits there for the pool's threads to end, and the child has none of them.
// To blame:  the handler: what works before the fork does not work after it.
// User sees: fork() does not return in the child, 0 % CPU; the parent waits for it.
// Fix:       pause in the prepare handler, on the parent's side of the fork.
// Repaired:  that.
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
