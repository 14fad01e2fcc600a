// Mechanism: a thread signals a condition variable before any thread waits for it. A condition variable does not store
//            signals. Then main waits, without checking whether the result is there already.
// To blame:  the wait without a check of the state.
// User sees: now and then the program stops in pthread_cond_wait(). The thread that signalled has ended.
// Fix:       wait in a loop that checks the state. Set the state under the same mutex.
// Repaired:  main checks the state before it waits.
//
// EXPECT-BARE: hang
// EXPECT: deadlock proven/unknown hang culprit="its only thread" victims=0
// EXPECT-WHY: deadlock proven/unknown hang culprit="its only thread" victims=0
// EXPECT-STACK: stack wait_for_result@wait main@main
#include <pthread.h>

#include "../baton.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static int has_result;

static void* compute_main(void* unused) {
  pthread_mutex_lock(&mutex);
  has_result = 1;
  pthread_cond_signal(&finished);
  pthread_mutex_unlock(&mutex);
  return unused;
}

__attribute__((noinline)) static int wait_for_result(void) {
  pthread_mutex_lock(&mutex);
#ifdef REPAIRED
  while (!has_result)
#endif
    pthread_cond_wait(&finished, &mutex);  // MARK: wait
  pthread_mutex_unlock(&mutex);
  return has_result;
}

int main(void) {
  pthread_t compute;
  pthread_create(&compute, NULL, compute_main, NULL);
  pthread_join(compute, NULL);
  return wait_for_result() == 1 ? 0 : 1;  // MARK: main
}
