// Mechanism: a thread holds a plain mutex across its own fork; the child has the copy of the lock, does not unlock it, and
//            locks it again. That a plain mutex may be unlocked in the child is of no use here. With -DHELPER the process
//            has a second thread.
// To blame:  the second lock, as without a fork.
// User sees: the child stops in a lock that its own thread has.
// Fix:       unlock in the child before it is locked again.
// Repaired:  so.
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
