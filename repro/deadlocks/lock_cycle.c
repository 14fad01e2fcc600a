// Mechanism: each of several threads holds one lock and waits for the lock of the next thread. These threads form a
//            ring.
//            -DSHARED:  the threads are processes, and the locks lie in memory that they share.
//            -DBESIDE:  main is not in the ring. Main goes on, and waits for signals.
// To blame:  the orders in which the threads take the locks. Not all threads take the locks in the same order.
// User sees: a program that stops now and then, under load, and uses no CPU time.
// Fix:       take the locks in one order everywhere.
// Repaired:  each thread takes the lock with the lower number first.
//
// EXPECT-BARE: hang
// EXPECT: lock-cycle proven hang lock=locks[1] holder=worker-1 victims=0
// EXPECT(shared): lock-cycle proven hang victims=1
// EXPECT-CORE: lock-cycle proven hang lock=locks[1]
// EXPECT-CORE(shared): none
#include <pthread.h>
#include <sys/mman.h>

#include "../baton.h"

#ifndef COUNT
#define COUNT 2
#endif

static pthread_mutex_t locks[COUNT];
static pthread_mutex_t* lock_at = locks;
static struct baton has_first, go_on;

static void work(int own) {
  int first = own, second = (own + 1) % COUNT;
#ifdef REPAIRED
  if (second < first) first = second, second = own;
#endif
  pthread_mutex_lock(&lock_at[first]);
#ifndef REPAIRED
  baton_pass(has_first);
  baton_wait(go_on);
#endif
  pthread_mutex_lock(&lock_at[second]);
  pthread_mutex_unlock(&lock_at[second]);
  pthread_mutex_unlock(&lock_at[first]);
}

// Waits until all threads have taken their first lock, and then lets them take their second lock.
static void let_go(void) {
#ifndef REPAIRED
  for (int i = 0; i < COUNT; ++i) baton_wait(has_first);
  for (int i = 0; i < COUNT; ++i) baton_pass(go_on);
#endif
}

#ifdef SHARED
int main(void) {
  pid_t children[COUNT];
  pthread_mutexattr_t shared;
  has_first = baton_make();
  go_on = baton_make();
  lock_at = mmap(NULL, sizeof locks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_init(&shared);
  pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  for (int i = 0; i < COUNT; ++i) pthread_mutex_init(&lock_at[i], &shared);
  for (int i = 0; i < COUNT; ++i) {
    children[i] = fork();
    if (children[i] != 0) continue;
    work(i);
    _exit(0);
  }
  let_go();
  int failed = 0;
  for (int i = 0; i < COUNT; ++i) failed |= end_of(children[i]);
  return failed;
}
#else
static void* thread_main(void* number) {
  char name[16];
  const int own = (int)(long)number;
  snprintf(name, sizeof name, "worker-%d", own);
  pthread_setname_np(pthread_self(), name);
  work(own);
  return NULL;
}

int main(void) {
  pthread_t threads[COUNT];
  has_first = baton_make();
  go_on = baton_make();
  for (int i = 0; i < COUNT; ++i) pthread_mutex_init(&locks[i], NULL);
  for (int i = 0; i < COUNT; ++i) pthread_create(&threads[i], NULL, thread_main, (void*)(long)i);
  let_go();
#ifdef BESIDE
  for (;;) pause();
#endif
  for (int i = 0; i < COUNT; ++i) pthread_join(threads[i], NULL);
  return 0;
}
#endif
