// Mechanism: main locks stdout by flockfile() and needs a mutex; a worker has that mutex and prints. A stream's lock names
//            its owner by the address of a thread.
// To blame:  the two orders of stream and mutex.
// User sees: both threads stand still, the one in printf().
// Fix:       the mutex before the stream, everywhere; or print when it has been given back.
// Repaired:  main takes the mutex first.
//
// EXPECT-BARE: hang
// EXPECT: lock-cycle proven hang victims=0
// EXPECT-CORE: lock-cycle proven hang
#include <pthread.h>

#include "../baton.h"

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static struct baton worker_has_it;

static void* worker_main(void* unused) {
  pthread_mutex_lock(&log_lock);
  baton_pass(worker_has_it);
  flockfile(stdout);
  funlockfile(stdout);
  pthread_mutex_unlock(&log_lock);
  return unused;
}

int main(void) {
  pthread_t worker;
  worker_has_it = baton_make();
#ifdef REPAIRED
  pthread_mutex_lock(&log_lock);
#endif
  flockfile(stdout);
  pthread_create(&worker, NULL, worker_main, NULL);
#ifndef REPAIRED
  baton_wait(worker_has_it);
  pthread_mutex_lock(&log_lock);
#endif
  pthread_mutex_unlock(&log_lock);
  funlockfile(stdout);
  pthread_join(worker, NULL);
  return 0;
}
