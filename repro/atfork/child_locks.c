// Mechanism: a library's child handler locks the library's mutex. The library's prepare handler did not lock this
//            mutex. Another thread held the mutex at the fork, and the child does not have that thread. So the child
//            handler waits for ever.
// To blame:  the library's handlers. The prepare handler must lock each mutex that the child handler locks.
// User sees: the child stops in fork(), at 0 % CPU, before any line of its own code has run.
// Fix:       lock in the prepare handler, or re-initialise the mutex in the child handler before locking it.
// Repaired:  the child handler re-initialises the mutex.
//
// EXPECT-BARE: hang
// EXPECT: atfork-child-stuck proven hang culprit="child handler reset (1st of 1)" holder=worker victims=1
// EXPECT-STACK: culprit worker_main@take
// EXPECT-STACK: stack reset@lock
// EXPECT-STACK: fork main@fork
// EXPECT-CORE: atfork-child-stuck likely/proven may-hang culprit="child handler reset"
#include <pthread.h>

#include "../baton.h"

static pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
static struct baton is_inside;

static void reset(void) {
#ifdef REPAIRED
  cache = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
#endif
  pthread_mutex_lock(&cache);  // MARK: lock
  pthread_mutex_unlock(&cache);
}

static void* worker_main(void* unused) {
  pthread_setname_np(pthread_self(), "worker");
  pthread_mutex_lock(&cache);  // MARK: take
  baton_pass(is_inside);
  park();
  return unused;
}

int main(void) {
  pthread_t worker;
  is_inside = baton_make();
  pthread_atfork(NULL, NULL, reset);
  pthread_create(&worker, NULL, worker_main, NULL);
  baton_wait(is_inside);
  const pid_t child = fork();  // MARK: fork
  if (child == 0) _exit(0);
  return end_of(child);
}
