// Mechanism: a library guards its mutex as POSIX advises: the library's prepare handler locks the mutex. The program
//            forks while it holds that mutex itself, as it would in a callback of the library. The handler waits for
//            the thread in which it runs.
// To blame:  fork() with the library's mutex held.
// User sees: the parent stops in fork(), at 0 % CPU. There is no child yet.
// Fix:       fork after the mutex is released, or use posix_spawn(), which calls no handlers.
// Repaired:  the mutex is released before the fork.
//
// EXPECT-BARE: hang
// EXPECT: atfork-handler-stuck proven hang culprit="prepare handler prepare (2nd of 2)" library=prepare_locks
// EXPECT-STACK: culprit main@take
// EXPECT-STACK: stack prepare@lock
// EXPECT-STACK: fork main@fork
// EXPECT-CORE: atfork-handler-stuck likely/proven may-hang culprit="prepare handler prepare"
#include <pthread.h>

#include "../baton.h"

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;

static int forks;

static void prepare(void) {
  pthread_mutex_lock(&registry);  // MARK: lock
  ++forks;
}

static void release(void) { pthread_mutex_unlock(&registry); }

static void nothing(void) {}

static void* other_main(void* unused) {
  park();
  return unused;
}

int main(void) {
  pthread_t other;
  pthread_atfork(prepare, release, release);
  pthread_atfork(nothing, NULL, NULL);
  pthread_create(&other, NULL, other_main, NULL);
  pthread_mutex_lock(&registry);  // MARK: take
#ifdef REPAIRED
  pthread_mutex_unlock(&registry);
#endif
  const pid_t child = fork();  // MARK: fork
  if (child == 0) _exit(0);
  return end_of(child);
}
