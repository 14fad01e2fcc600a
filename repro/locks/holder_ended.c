// Mechanism: a thread ends while it holds a mutex. No thread can unlock the mutex any more. The child that main forks
//            then locks the mutex, and hangs.
//            Without a variant the thread returns from its function.
//            exits:     the thread calls pthread_exit().
//            cancelled: the thread is cancelled in a condition wait, which locks the mutex again before the thread
//                       unwinds.
//            parent:    after the fork, main locks the mutex. The child does not.
//            alone:     main locks the mutex itself. There is no fork.
// To blame:  the thread, which ends without unlocking. The fork only makes the fault visible.
// User sees: a lock whose owner is not in the list of threads.
// Fix:       unlock on every way out: pthread_cleanup_push, or a guard object.
// Repaired:  the thread unlocks the mutex in a cleanup handler.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-mutex proven hang lock=mutex holder=worker start=worker_main victims=1
// EXPECT-STACK: culprit worker_main@acquire
// EXPECT-STACK: stack main@touch
// EXPECT(cancelled): orphaned-mutex proven hang lock=mutex holder=worker start=worker_main victims=1
// EXPECT-STACK(cancelled): culprit worker_main@wait
// EXPECT-STACK(cancelled): stack main@touch
// EXPECT(parent): orphaned-mutex proven hang lock=mutex holder=worker start=worker_main
// EXPECT-STACK(parent): culprit worker_main@acquire
// EXPECT(alone): orphaned-mutex proven hang lock=mutex
// EXPECT-WHY: orphaned-mutex proven hang lock=mutex victims=1
// EXPECT-WHY(parent): orphaned-mutex proven hang lock=mutex
// EXPECT-CORE: orphaned-mutex proven hang lock=mutex
// EXPECT-WHY(alone): orphaned-mutex proven hang lock=mutex
// EXPECT-CORE(alone): orphaned-mutex likely/proven may-hang lock=mutex
// EXPECT-CORE(parent): orphaned-mutex likely/proven may-hang lock=mutex
#include <pthread.h>

#include "../baton.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static struct baton worker_waits;

static void unlock(void* unused) {
  (void)unused;
#ifdef REPAIRED
  pthread_mutex_unlock(&mutex);
#endif
}

static void* worker_main(void* unused) {
  pthread_setname_np(pthread_self(), "worker");
  pthread_mutex_lock(&mutex);  // MARK: acquire
  pthread_cleanup_push(unlock, NULL);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  baton_pass(worker_waits);
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
#ifdef CANCELLED
  for (;;) pthread_cond_wait(&never, &mutex);  // MARK: wait
#endif
#ifdef EXITS
  pthread_exit(NULL);
#endif
  pthread_cleanup_pop(1);
  return unused;
}

int main(void) {
  pthread_t worker;
  worker_waits = baton_make();
  pthread_create(&worker, NULL, worker_main, NULL);
  baton_wait(worker_waits);
#ifdef CANCELLED
  pthread_cancel(worker);
#else
  (void)never;
#endif
  pthread_join(worker, NULL);
#ifdef ALONE
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  return 0;
#endif
  const pid_t child = fork();
  if (child == 0) {
#ifndef PARENT
    pthread_mutex_lock(&mutex);  // MARK: touch
    pthread_mutex_unlock(&mutex);
#endif
    _exit(0);
  }
  const int status = end_of(child);
#ifdef PARENT
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
#endif
  return status;
}
