// Mechanism: the forking thread holds a lock that records its owner by thread id, while another thread waits for the
//            lock. Each variant has another kind of lock. The child's thread has another id, so it cannot release the
//            lock. libc refuses to unlock a mutex. libc does not refuse to unlock a rwlock, but the unlock corrupts the
//            rwlock. When the child then takes the lock again, the child waits for ever.
// To blame:  a lock that checks its owner, held across a fork.
// User sees: the child stops in a lock that it seems to have released.
// Fix:       re-initialise the lock in the child, or use a normal mutex.
// Repaired:  the child re-initialises the lock.
//
// EXPECT-BARE: hang
// EXPECT: self-held-lock proven hang lock=state_lock victims=1
// EXPECT-STACK: culprit fork_consistent@acquire main@fork-call
// EXPECT-STACK: stack enter@relock main@child
// EXPECT-CURED: --cure=self-held stdout="child: excluded 16, went on"
// EXPECT-CURED: --cure=auto stdout="child: excluded 16, went on"
// EXPECT-CURED: --on-orphan=recover stdout="child: excluded 16, went on"
// EXPECT-CURED(repaired): --cure=self-held stdout="child: excluded 16, went on"
//
// In the variant `pi` the child locks a priority-inheriting mutex. The kernel does not find the mutex's owner in the
// child, and libc aborts the child:
// EXPECT-BARE(pi): error
// EXPECT(pi): self-held-lock proven error lock=state_lock
// EXPECT-STACK(pi): culprit fork_consistent@acquire main@fork-call
// EXPECT-CURED(pi): --cure=self-held stdout="child: excluded 16, went on"
// EXPECT-CURED(pi): --cure=auto stdout="child: excluded 16, went on"
// EXPECT-CORE: self-held-lock proven hang lock=state_lock
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "../baton.h"
#include "mutex_kind.h"

#ifdef RWLOCK
static pthread_rwlock_t state_lock;
static void make(void) { pthread_rwlock_init(&state_lock, NULL); }
#define take() pthread_rwlock_wrlock(&state_lock)
#define attempt() pthread_rwlock_trywrlock(&state_lock)
#define give() pthread_rwlock_unlock(&state_lock)
// The count of readers includes a reader that waits.
static int is_awaited(void) { return __atomic_load_n(&state_lock.__data.__readers, __ATOMIC_SEQ_CST) >> 3 != 0; }
#else
static pthread_mutex_t state_lock;
static void make(void) { make_mutex_of_kind(&state_lock); }
#define take() pthread_mutex_lock(&state_lock)
#define attempt() pthread_mutex_trylock(&state_lock)
#define give() pthread_mutex_unlock(&state_lock)
// In a robust or priority-inheriting mutex the lock word holds the owner's id. The highest bit of this word means that
// a thread waits. In other mutexes the value 2 means that a thread waits.
static int is_awaited(void) {
  const unsigned word = (unsigned)__atomic_load_n(&state_lock.__data.__lock, __ATOMIC_SEQ_CST);
  return word == 2 || (word & 0x80000000U) != 0;
}
#endif

static struct baton forked;

static void* waiter_main(void* unused) {
#ifdef RWLOCK
  pthread_rwlock_rdlock(&state_lock);
#else
  take();
#endif
  give();
  baton_wait(forked);
  return unused;
}

static void* excluded_main(void* result) {
  *(int*)result = attempt();
  return NULL;
}

__attribute__((noinline)) static int enter(void) {
  pthread_t other;
  int result = 0;
  take();  // MARK: relock
  pthread_create(&other, NULL, excluded_main, &result);
  pthread_join(other, NULL);
  give();
  return result;
}

__attribute__((noinline)) static pid_t fork_consistent(void) {
  pthread_t waiter;
  take();  // MARK: acquire
  pthread_create(&waiter, NULL, waiter_main, NULL);
  while (!is_awaited()) sched_yield();
  const pid_t child = fork();
  if (child < 0) abort();
  if (child != 0) {
    give();
    baton_pass(forked);
    pthread_join(waiter, NULL);
  }
  return child;
}

int main(void) {
  forked = baton_make();
  make();
  const pid_t child = fork_consistent();  // MARK: fork-call
  if (child == 0) {
#ifdef REPAIRED
    make();
#else
    give();
#endif
    const int excluded = enter();  // MARK: child
    printf("child: excluded %d, went on\n", excluded);
    fflush(stdout);
    _exit(excluded == EBUSY ? 0 : 1);
  }
  return end_of(child);
}
