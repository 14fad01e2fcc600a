// Mechanism: the forking thread itself holds a recursive mutex. In the child the thread has another id. The mutex
//            records the id of the parent's thread, so the child's unlock is refused.
// To blame:  a mutex that checks its owner, held across a fork.
// User sees: in every child the unlock fails with EPERM, and the mutex stays locked.
// Fix:       use a normal mutex, or re-initialise the mutex in the child.
// Repaired:  the mutex is a normal one, whose unlock does not check the owner.
//
// EXPECT-BARE: error
// EXPECT: self-held-lock proven error lock=state_mutex victims=0
// EXPECT-STACK: culprit fork_consistent@acquire main@fork-call
// EXPECT-STACK: stack leave@touch main@child
// EXPECT-CURED: --cure=self-held stdout="child: unlocked"
// EXPECT-CURED: --cure=auto stdout="child: unlocked"
#include <pthread.h>

#include "../baton.h"

pthread_mutex_t state_mutex;
baton helper_runs = baton_make();

void* helper_main(void*) {
  baton_pass(helper_runs);
  park();
  return nullptr;
}

[[gnu::noinline]] int leave() {
  const int error = pthread_mutex_unlock(&state_mutex);  // MARK: touch
  return error == 0 ? 0 : 1;
}

[[gnu::noinline]] pid_t fork_consistent() {
  pthread_mutex_lock(&state_mutex);  // MARK: acquire
  const pid_t child = fork();
  if (child < 0) abort();
  return child;
}

int main() {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
#ifndef REPAIRED
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
#endif
  pthread_mutex_init(&state_mutex, &kind);
  pthread_t helper;
  pthread_create(&helper, nullptr, helper_main, nullptr);
  baton_wait(helper_runs);
  const pid_t child = fork_consistent();  // MARK: fork-call
  if (child == 0) {
    const int failed = leave();  // MARK: child
    printf("child: %s\n", failed != 0 ? "refused" : "unlocked");
    fflush(stdout);
    _exit(failed);
  }
  const int failed = leave();
  return failed != 0 ? failed : end_of(child);
}
