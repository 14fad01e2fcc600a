// Mechanism: the program has a reader-writer lock of its own. A worker thread holds the lock for reading while main
//            forks. In the child, the lock still counts this reader. The child can read, because readers share the
//            lock. Then the child wants to write. For this the child waits for the worker, but only the parent has that
//            thread.
// To blame:  the fork, in a process with another thread that holds locks. It does not matter who implemented the lock.
// User sees: the child reads for a while, then stops in syscall(), at 0 % CPU.
// Fix:       fork before the worker starts, or exec in the child, or reset the lock in a child handler.
// Repaired:  the worker has released the lock before the fork.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-custom-lock proven hang culprit="table_lock.readers (rw lock)" start=worker_main victims=1
// EXPECT-STACK: culprit rw_lock_shared@acquired
// EXPECT-STACK: stack sleep_on@asleep rw_lock@waiting write_table@touch main@child
// EXPECT-WHY: lost-wakeup proven/possible hang victims=1
// EXPECT-CORE: lost-wakeup possible may-hang start=worker_main
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <forksight/annotate.h>

#include "../baton.h"

struct rw_lock {
  atomic_int readers;  // -1: a writer holds the lock
};

static bool try_shared(struct rw_lock* lock) {
  int seen = atomic_load(&lock->readers);
  while (seen >= 0) {
    if (atomic_compare_exchange_weak(&lock->readers, &seen, seen + 1)) return true;
  }
  return false;
}

static bool try_exclusive(struct rw_lock* lock) {
  int none = 0;
  return atomic_compare_exchange_strong(&lock->readers, &none, -1);
}

static void sleep_on(struct rw_lock* lock) {
  const int seen = atomic_load(&lock->readers);
  if (seen != 0) syscall(SYS_futex, &lock->readers, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);  // MARK: asleep
}

static __attribute__((noinline)) void rw_lock_shared(struct rw_lock* lock) {
  // Announces a wait before each attempt. If only other readers hold the lock, no wait follows. An announcement without
  // a wait is allowed.
  FORKSIGHT_LOCK_WAITING_AS(lock, "rw lock", FORKSIGHT_SHARED);
  while (!try_shared(lock)) sleep_on(lock);
  FORKSIGHT_LOCK_ACQUIRED_AS(lock, "rw lock", FORKSIGHT_SHARED);  // MARK: acquired
}

static __attribute__((noinline)) void rw_lock(struct rw_lock* lock) {
  if (!try_exclusive(lock)) {
    FORKSIGHT_LOCK_WAITING(lock, "rw lock");
    do {
      sleep_on(lock);  // MARK: waiting
    } while (!try_exclusive(lock));
  }
  FORKSIGHT_LOCK_ACQUIRED(lock, "rw lock");
}

static void rw_unlock(struct rw_lock* lock) {
  FORKSIGHT_LOCK_RELEASED(lock);
  if (atomic_load(&lock->readers) < 0) {
    atomic_store(&lock->readers, 0);
  } else {
    atomic_fetch_sub(&lock->readers, 1);
  }
  syscall(SYS_futex, &lock->readers, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static struct rw_lock table_lock;
static int table;
static struct baton worker_holds;
static struct baton never;

static __attribute__((noinline)) int read_table(bool holds) {
  rw_lock_shared(&table_lock);
  if (holds) {
    baton_pass(worker_holds);
    baton_wait(never);
  }
  const int value = table;
  rw_unlock(&table_lock);
  return value;
}

static void* worker_main(void* unused) {
  pthread_setname_np(pthread_self(), "worker");
#ifdef REPAIRED
  const int value = read_table(false);
  baton_pass(worker_holds);
  baton_wait(never);
#else
  const int value = read_table(true);
#endif
  return value == 0 ? unused : NULL;
}

static __attribute__((noinline)) int write_table(void) {
  rw_lock(&table_lock);  // MARK: touch
  const int value = ++table;
  rw_unlock(&table_lock);
  return value;
}

int main(void) {
  pthread_t worker;
  worker_holds = baton_make();
  never = baton_make();
  pthread_create(&worker, NULL, worker_main, NULL);
  baton_wait(worker_holds);
  const pid_t child = fork();
  if (child == 0) {
    const int value = read_table(false) + write_table();  // MARK: child
    _exit(value == 1 ? 0 : 1);
  }
  return end_of(child);
}
