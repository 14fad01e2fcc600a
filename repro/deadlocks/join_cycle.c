// Mechanism: main holds a lock while it joins a worker. Just before its end the worker takes that lock. With -DRING
//            three threads join each other, without a lock.
// To blame:  the join while the lock is held, or the ring of joins.
// User sees: the program does its work and does not end.
// Fix:       release the lock before joining. Do all joins in one thread.
// Repaired:  main releases the lock first.
//
// EXPECT-BARE: hang
// EXPECT: join-cycle proven hang lock=state_lock holder=join_cycle victims=0
// EXPECT(ring): join-cycle proven hang victims=0
// EXPECT-CORE: join-cycle proven hang lock=state_lock
// EXPECT-CORE(ring): join-cycle proven hang
#include <pthread.h>

#include "../baton.h"

#ifdef RING
enum { kThreads = 3 };
static pthread_t threads[kThreads];
static struct baton all_made;

static void* joiner_main(void* next) {
  baton_wait(all_made);
  pthread_join(threads[(long)next], NULL);
  return NULL;
}

int main(void) {
  all_made = baton_make();
  for (long i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, joiner_main, (void*)((i + 1) % kThreads));
  for (int i = 0; i < kThreads; ++i) baton_pass(all_made);
  park();
}
#else
static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
static int is_done;

static void* worker_main(void* unused) {
  pthread_mutex_lock(&state_lock);
  is_done = 1;
  pthread_mutex_unlock(&state_lock);
  return unused;
}

int main(void) {
  pthread_t worker;
  pthread_mutex_lock(&state_lock);
  pthread_create(&worker, NULL, worker_main, NULL);
#ifdef REPAIRED
  pthread_mutex_unlock(&state_lock);
#endif
  pthread_join(worker, NULL);
  return is_done ? 0 : 1;
}
#endif
