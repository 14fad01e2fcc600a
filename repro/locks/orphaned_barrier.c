// Mechanism: a thread has arrived at a barrier for three threads. It waits there for main and for a second thread,
//            which is still busy when main forks. The child arrives at the barrier, too. No other thread of the child
//            ever arrives there.
//            destroy: the child destroys the barrier. pthread_barrier_destroy() waits until the lost thread has left
//                     the barrier.
//            passes:  the barrier is for two threads. The child passes it, because the barrier counts the lost thread
//                     as the other one.
// To blame:  the fork, while a thread was at the barrier.
// User sees: the child stops at a barrier that its parent passes. Or the child goes on too early.
// Fix:       initialise the barrier anew in the child, for as many threads as the child has.
// Repaired:  the child initialises the barrier anew, for one thread.
//
// EXPECT-BARE: hang
// EXPECT-BARE(passes): ok
// EXPECT: orphaned-barrier proven/possible hang lock=barrier holder=worker start=worker_main victims=1
// EXPECT-STACK: culprit worker_main@arrive
// EXPECT-STACK: stack main@wait
// EXPECT-STACK: fork main@fork
// EXPECT(destroy): orphaned-barrier proven hang lock=barrier holder=worker start=worker_main victims=1
// EXPECT-STACK(destroy): culprit worker_main@arrive
// EXPECT-STACK(destroy): stack main@destroy
// EXPECT(passes): orphaned-barrier proven corruption lock=barrier holder=worker start=worker_main
// EXPECT-STACK(passes): culprit worker_main@arrive
// EXPECT-STACK(passes): stack main@wait
// EXPECT-CORE(destroy): orphaned-barrier proven hang lock=barrier
// EXPECT-CORE: orphaned-barrier proven/possible hang lock=barrier
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "../baton.h"

#ifdef PASSES
enum { kThreads = 2 };
#else
enum { kThreads = 3 };
#endif

static pthread_barrier_t barrier;
static int busy[2];  // a pipe

static void* worker_main(void* unused) {
  pthread_setname_np(pthread_self(), "worker");
  pthread_barrier_wait(&barrier);  // MARK: arrive
  return unused;
}

// This thread never arrives at the barrier: it waits for a byte that nobody writes.
static void* late_main(void* unused) {
  char byte;
  if (read(busy[0], &byte, 1) == 1) pthread_barrier_wait(&barrier);
  return unused;
}

// Returns how many threads have arrived. pthread has no function for that, so the case reads the first word of glibc's
// barrier.
static unsigned arrivals(void) { return atomic_load((_Atomic unsigned*)(void*)&barrier); }

int main(void) {
  pthread_t worker;
  pthread_t late;
  if (pipe(busy) != 0) return 1;
  pthread_barrier_init(&barrier, NULL, kThreads);
  pthread_create(&worker, NULL, worker_main, NULL);
  pthread_create(&late, NULL, late_main, NULL);
  while (arrivals() == 0) sched_yield();
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
#ifdef REPAIRED
    pthread_barrier_init(&barrier, NULL, 1);
#endif
#ifdef DESTROY
    pthread_barrier_destroy(&barrier);  // MARK: destroy
#else
    pthread_barrier_wait(&barrier);  // MARK: wait
#endif
    _exit(0);
  }
  return end_of(child);
}
