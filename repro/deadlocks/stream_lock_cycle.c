// Mechanism: main locks stdout by flockfile() and then needs a mutex. A worker holds that mutex and locks stdout, as
//            printf() would. The lock of a stream records its owner by the address of a thread's descriptor.
// To blame:  the two orders in which stream and mutex are locked.
// User sees: both threads stop. In a usual program one of them is in printf().
// Fix:       lock the mutex before the stream, everywhere. Or print after the mutex is unlocked.
// Repaired:  main locks the mutex first.
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
