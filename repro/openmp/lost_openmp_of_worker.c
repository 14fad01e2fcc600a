// Mechanism: a thread that is not the first one starts a region and forks. In libgomp, a pool belongs to the thread
//            that made the pool. Here this thread is the worker.
// To blame:  fork() after a parallel region of libgomp in the same thread.
// User sees: the child stops in its first region, at 0 % CPU. The first thread of the parent waits in pthread_join().
// Fix:       fork in a thread that has no team of its own.
// Repaired:  the first thread forks.
//
// EXPECT-BARE: hang
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" victims=1
// EXPECT-STACK: stack count_threads@region fork_and_use@child
// EXPECT-STACK: fork fork_and_use@fork
// EXPECT-CURED: --omp=quiesce stdout="parent: 2 threads" stdout="child: 2 threads"
// EXPECT-CURED: --omp=rebuild stdout="parent: 2 threads" stdout="child: 2 threads"
// EXPECT-CORE: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads"
//
// LLVM's runtime makes a new pool in the child:
// EXPECT-BARE(libomp): ok
// EXPECT-NONE(libomp)
// EXPECT-BARE(libomp19): ok
// EXPECT-NONE(libomp19)
#include <omp.h>
#include <pthread.h>

#include "../baton.h"

static int failed;

__attribute__((noinline)) static int count_threads(const char* who) {
  int threads = 0;
#pragma omp parallel num_threads(2)  // MARK: region
  {
#pragma omp atomic
    ++threads;
  }
  printf("%s: %d threads\n", who, threads);
  fflush(stdout);
  return threads == 2 ? 0 : 1;
}

__attribute__((noinline)) static int fork_and_use(void) {
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    const int in_child = count_threads("child");  // MARK: child
    _exit(in_child);
  }
  return end_of(child);
}

static void* worker_main(void* unused) {
  failed = count_threads("parent");
#ifndef REPAIRED
  failed |= fork_and_use();
#endif
  return unused;
}

int main(void) {
  pthread_t worker;
  pthread_create(&worker, NULL, worker_main, NULL);
  pthread_join(worker, NULL);
#ifdef REPAIRED
  failed |= fork_and_use();
#endif
  return failed;
}
