// Mechanism: the program has a lock of its own on a futex (Drepper's "mutex2"). A worker thread holds the lock while
//            main forks, and the child waits for the lock. Only the annotations tell forksight that this futex is a
//            lock, and which thread holds it.
// To blame:  the fork, in a process with another thread that holds locks. It does not matter who implemented the lock.
// User sees: the child stops in syscall(), at 0 % CPU. Nothing names the lock.
// Fix:       fork before the worker starts, or exec in the child, or reset the lock in a child handler.
// Repaired:  the worker has released the lock before the fork.
// Variant plain: the lock has no annotations. The hang is still proved, but not its cause.
// Variant handler: a child handler resets the lock, and annotates the reset.
// Variant around: the struct of the lock begins with a mutex, which is released while the lock is held. So two locks
//            have one address.
// Variant timed: the child gives up after a millisecond, and annotates that it gave up.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-custom-lock proven hang culprit="cache_lock.state (futex lock)" start=worker_main victims=1
// EXPECT-STACK: culprit fl_lock@acquired fill_cache@take worker_main@fill
// EXPECT-STACK: stack fl_lock@sleep read_cache@touch main@child
// EXPECT(plain): lost-wakeup proven/possible hang culprit="1 lost thread" holder=worker start=worker_main victims=1
// EXPECT-STACK(plain): stack fl_lock@sleep read_cache@touch main@child
// EXPECT(around): orphaned-custom-lock proven hang culprit="cache_lock.entry (futex lock)" start=worker_main victims=1
// EXPECT-BARE(handler): ok
// EXPECT-NONE(handler)
// EXPECT-BARE(timed): error
// EXPECT(timed): orphaned-custom-lock proven error culprit="cache_lock.state (futex lock)" start=worker_main
// EXPECT-STACK(timed): stack fl_lock_for@timed read_cache@try main@child
// EXPECT-WHY: lost-wakeup proven/possible hang victims=1
// EXPECT-CORE: lost-wakeup possible may-hang start=worker_main
// EXPECT-CORE(plain): lost-wakeup possible may-hang culprit="1 lost thread" start=worker_main
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "../baton.h"

#ifdef PLAIN
#define FORKSIGHT_LOCK_WAITING(lock, name) ((void)(lock))
#define FORKSIGHT_LOCK_ACQUIRED(lock, name) ((void)(lock))
#define FORKSIGHT_LOCK_RELEASED(lock) ((void)(lock))
#else
#include <forksight/annotate.h>
#endif

#ifdef AROUND
#define ENTRY pthread_mutex_t entry;
#define ENTER(lock) pthread_mutex_lock(&(lock)->entry)
#define LEAVE(lock) pthread_mutex_unlock(&(lock)->entry)
#else
#define ENTRY
#define ENTER(lock) ((void)(lock))
#define LEAVE(lock) ((void)(lock))
#endif

struct futex_lock {
  ENTRY
  atomic_int state;  // 0 free, 1 taken, 2 taken and waited for
};

static void __attribute__((noinline)) fl_lock(struct futex_lock* lock) {
  int seen = 0;
  ENTER(lock);
  if (!atomic_compare_exchange_strong(&lock->state, &seen, 1)) {
    LEAVE(lock);
    FORKSIGHT_LOCK_WAITING(lock, "futex lock");  // MARK: waiting
    while (atomic_exchange(&lock->state, 2) != 0) {
      syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);  // MARK: sleep
    }
  }
  FORKSIGHT_LOCK_ACQUIRED(lock, "futex lock");  // MARK: acquired
  if (seen == 0) LEAVE(lock);
}

#ifdef TIMED
static int __attribute__((noinline)) fl_lock_for(struct futex_lock* lock, struct timespec time) {
  int seen = 0;
  if (!atomic_compare_exchange_strong(&lock->state, &seen, 1)) {
    FORKSIGHT_LOCK_WAITING_AS(lock, "futex lock", FORKSIGHT_TIMED);  // MARK: timed
    while (atomic_exchange(&lock->state, 2) != 0) {
      if (syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, &time, NULL, 0) == 0 || errno != ETIMEDOUT) continue;
      FORKSIGHT_LOCK_GAVE_UP(lock);
      return ETIMEDOUT;
    }
  }
  FORKSIGHT_LOCK_ACQUIRED(lock, "futex lock");
  return 0;
}
#endif

static void fl_unlock(struct futex_lock* lock) {
  FORKSIGHT_LOCK_RELEASED(lock);
  if (atomic_exchange(&lock->state, 0) == 2) syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static struct futex_lock cache_lock;
static int cache;
static struct baton worker_holds;
static struct baton never;

static __attribute__((noinline)) int fill_cache(void) {
  fl_lock(&cache_lock);  // MARK: take
  cache = 1;
#ifndef REPAIRED
  baton_pass(worker_holds);
  baton_wait(never);
#endif
  fl_unlock(&cache_lock);
  return cache;
}

static void* worker_main(void* unused) {
  pthread_setname_np(pthread_self(), "worker");
  const int filled = fill_cache();  // MARK: fill
  baton_pass(worker_holds);
  park();
  return filled ? unused : NULL;
}

static __attribute__((noinline)) int read_cache(void) {
#ifdef TIMED
  const struct timespec moment = {.tv_nsec = 1000000};
  if (fl_lock_for(&cache_lock, moment) != 0) return -1;  // MARK: try
#else
  fl_lock(&cache_lock);  // MARK: touch
#endif
  const int value = cache;
  fl_unlock(&cache_lock);
  return value;
}

#ifdef HANDLER
static void reset_in_child(void) {
  FORKSIGHT_LOCK_RELEASED(&cache_lock);
  atomic_store(&cache_lock.state, 0);
}
#endif

int main(void) {
#ifdef HANDLER
  pthread_atfork(NULL, NULL, reset_in_child);
#endif
  pthread_t worker;
  worker_holds = baton_make();
  never = baton_make();
  pthread_create(&worker, NULL, worker_main, NULL);
  baton_wait(worker_holds);
  const pid_t child = fork();
  if (child == 0) {
    const int value = read_cache();  // MARK: child
    _exit(value == 1 ? 0 : 1);
  }
  return end_of(child);
}
