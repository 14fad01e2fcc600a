// Mechanism: another thread holds a mutex at the fork. Each variant has another kind of mutex.
//            errorcheck, adaptive: the child hangs.
//            robust: the child hangs. It does not get EOWNERDEAD, because the owner lives on in the parent.
//            pi:     the mutex is priority-inheriting. The kernel finds no owner in the child, so libc aborts the
//                    child.
//            c11:    the mutex is an mtx_t.
// To blame:  the fork, in a process with a thread that holds locks.
// User sees: the child stops in a lock, or is aborted: "The futex facility returned an unexpected error code."
// Fix:       exec in the child, fork before the thread starts, or re-initialise the mutex in a child handler.
// Repaired:  the thread has unlocked the mutex before the fork.
//
// EXPECT-BARE: hang
// EXPECT-BARE(pi): error
// EXPECT: orphaned-mutex proven hang lock=mutex holder=holder start=holder_main victims=1
// EXPECT-STACK: culprit holder_main@acquire
// EXPECT-STACK: stack main@touch
// EXPECT-STACK: fork main@fork
// EXPECT(pi): orphaned-mutex proven error lock=mutex holder=holder start=holder_main
// EXPECT-STACK(pi): culprit holder_main@acquire
// EXPECT-STACK(pi): stack main@touch
// EXPECT-CORE: orphaned-mutex proven hang lock=mutex start=holder_main
#include <pthread.h>
#include <threads.h>

#include "../baton.h"
#include "mutex_kind.h"

#ifdef C11
static mtx_t mutex;
static void make_mutex(void) { mtx_init(&mutex, mtx_plain); }
#define LOCK mtx_lock
#define UNLOCK mtx_unlock
#else
static pthread_mutex_t mutex;
static void make_mutex(void) { make_mutex_of_kind(&mutex); }
#define LOCK pthread_mutex_lock
#define UNLOCK pthread_mutex_unlock
#endif

static struct baton holder_is_ready;

static int holder_main(void* unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "holder");
  LOCK(&mutex);  // MARK: acquire
#ifndef REPAIRED
  baton_pass(holder_is_ready);
  park();
#endif
  UNLOCK(&mutex);
  baton_pass(holder_is_ready);
  park();
  return 0;
}

int main(void) {
  thrd_t holder;
  make_mutex();
  holder_is_ready = baton_make();
  if (thrd_create(&holder, holder_main, NULL) != thrd_success) return 1;
  baton_wait(holder_is_ready);
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    LOCK(&mutex);  // MARK: touch
    UNLOCK(&mutex);
    _exit(0);
  }
  return end_of(child);
}
