// Mechanism: none. libgomp keeps a pool for each thread. A worker thread has a pool. Main forks, and does not use that
//            pool. In parent and child, main's regions get teams of their own.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <omp.h>
#include <pthread.h>

#include "../baton.h"

static struct baton pool_is_made;

__attribute__((noinline)) static int count_threads(void) {
  int threads = 0;
#pragma omp parallel num_threads(2)
  {
#pragma omp atomic
    ++threads;
  }
  return threads;
}

static void* worker_main(void* unused) {
  if (count_threads() != 2) abort();
  baton_pass(pool_is_made);
  park();
  return unused;
}

int main(void) {
  pthread_t worker;
  pool_is_made = baton_make();
  pthread_create(&worker, NULL, worker_main, NULL);
  baton_wait(pool_is_made);
  const pid_t child = fork();
  const int threads = count_threads();
  if (child == 0) _exit(threads == 2 ? 0 : 1);
  const int status = end_of(child);
  return threads == 2 ? status : 1;
}
