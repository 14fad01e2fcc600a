// Mechanism: a thread holds a normal mutex across its own fork. The child inherits the mutex in its locked state, and
//            locks it again without unlocking it first. (The child could unlock the mutex, because a normal mutex does
//            not check its owner.) With -DHELPER the process has a second thread.
// To blame:  the second lock, as in a process that does not fork.
// User sees: the child stops in a lock that its own thread holds.
// Fix:       unlock the mutex in the child before locking it again.
// Repaired:  the child unlocks the mutex before it locks it again.
//
// EXPECT-BARE: hang
// EXPECT: self-deadlock proven hang lock=state_lock victims=1
// EXPECT-STACK: stack main@relock
#include <pthread.h>

#include "../baton.h"

static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;

#ifdef HELPER
static struct baton helper_runs;

static void* helper_main(void* unused) {
  baton_pass(helper_runs);
  park();
  return unused;
}
#endif

int main(void) {
#ifdef HELPER
  pthread_t helper;
  helper_runs = baton_make();
  pthread_create(&helper, NULL, helper_main, NULL);
  baton_wait(helper_runs);
#endif
  pthread_mutex_lock(&state_lock);
  const pid_t child = fork();
  if (child == 0) {
#ifdef REPAIRED
    pthread_mutex_unlock(&state_lock);
#endif
    pthread_mutex_lock(&state_lock);  // MARK: relock
    _exit(0);
  }
  return end_of(child);
}
