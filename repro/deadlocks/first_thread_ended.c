// Mechanism: the first thread ends by pthread_exit() while it holds a lock. The kernel lists this thread until the
//            process ends, so its thread id still exists. With -DRWLOCK the lock is a rwlock, held for writing.
// To blame:  pthread_exit() while the lock is held.
// User sees: a thread waits for a lock. The owner of the lock is in the list of threads, as a zombie.
// Fix:       unlock the lock on every way out of a thread.
// Repaired:  the lock is unlocked first.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-mutex proven hang lock=state_lock
// EXPECT(rwlock): orphaned-rwlock proven hang lock=state_lock
#include <pthread.h>

#include "../baton.h"

#ifdef RWLOCK
static pthread_rwlock_t state_lock = PTHREAD_RWLOCK_INITIALIZER;
#define LOCK pthread_rwlock_wrlock
#define UNLOCK pthread_rwlock_unlock
#else
static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCK pthread_mutex_lock
#define UNLOCK pthread_mutex_unlock
#endif

static void* worker_main(void* unused) {
  LOCK(&state_lock);
  UNLOCK(&state_lock);
  return unused;
}

int main(void) {
  pthread_t worker;
  LOCK(&state_lock);
  pthread_create(&worker, NULL, worker_main, NULL);
#ifdef REPAIRED
  UNLOCK(&state_lock);
#endif
  pthread_exit(NULL);
}
