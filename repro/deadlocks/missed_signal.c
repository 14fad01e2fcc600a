// Mechanism: a thread signals a condition variable before anybody waits for it: condition variables keep nothing. Main
//            then waits without looking whether what it waits for has come already.
// To blame:  the wait without a predicate.
// User sees: now and then the program stops in pthread_cond_wait(); the thread that was to signal has ended.
// Fix:       wait in a loop that asks for the state itself, which is set under the same mutex.
// Repaired:  the wait asks first.
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
