// Mechanism: a worker thread holds a spinlock while main forks. The child spins until the worker releases the lock, but
//            the child does not have that thread.
// To blame:  the fork, in a process with a thread that holds locks.
// User sees: the child takes 100 % of a CPU for ever, and does nothing.
// Fix:       fork before the worker starts, or exec in the child, or re-initialise the lock in a child handler.
// Repaired:  a child handler re-initialises the lock.
//
// EXPECT-BARE: spin
// EXPECT: orphaned-spinlock proven hang lock=ring_lock holder=producer start=producer_main
// EXPECT-STACK: culprit put@acquire producer_main@put
// EXPECT-STACK: stack take@touch main@child
// EXPECT-CURED: --on-orphan=recover stdout="child: went on"
// EXPECT-CURED: --cure=auto,orphans stdout="child: went on"
// EXPECT-RUN: --on-orphan=recover outcome=cured status=0 says="the data that the lock protects may be half-changed"
// EXPECT-RUN: --on-orphan=abort outcome=error status=134 says="fails instead of hanging"
// EXPECT-WHY: orphaned-spinlock likely/possible hang lock=ring_lock
// EXPECT-CORE: orphaned-spinlock likely/possible hang lock=ring_lock start=producer_main
#include <pthread.h>

#include "../baton.h"

static pthread_spinlock_t ring_lock;
static int ring_items = 0;
static struct baton producer_is_inside;

#ifdef REPAIRED
static void forget_the_producer(void) { pthread_spin_init(&ring_lock, PTHREAD_PROCESS_PRIVATE); }
#endif

__attribute__((noinline)) static int put(void) {
  pthread_spin_lock(&ring_lock);  // MARK: acquire
  ++ring_items;
  baton_pass(producer_is_inside);
  park();
  pthread_spin_unlock(&ring_lock);
  return ring_items;
}

static void* producer_main(void* unused) {
  pthread_setname_np(pthread_self(), "producer");
  ring_items += put();  // MARK: put
  return unused;
}

__attribute__((noinline)) static int take(void) {
  pthread_spin_lock(&ring_lock);  // MARK: touch
  const int items = ring_items--;
  pthread_spin_unlock(&ring_lock);
  return items;
}

int main(void) {
  pthread_t producer;
  producer_is_inside = baton_make();
  pthread_spin_init(&ring_lock, PTHREAD_PROCESS_PRIVATE);
#ifdef REPAIRED
  pthread_atfork(NULL, NULL, forget_the_producer);
#endif
  pthread_create(&producer, NULL, producer_main, NULL);
  baton_wait(producer_is_inside);
  const pid_t child = fork();
  if (child == 0) {
    const int items = take();  // MARK: child
    printf("child: went on\n");
    fflush(stdout);
    _exit(items == 1 ? 0 : 1);
  }
  return end_of(child);
}
