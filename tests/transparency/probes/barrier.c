/* Barriers. */
#include "probe.h"

#include <sched.h>
#include <stdatomic.h>

static pthread_barrier_t g_barrier;

/* The first word of glibc's barrier counts arrivals. */
static unsigned arrivals(void) { return atomic_load((_Atomic unsigned*)(void*)&g_barrier); }

PROBE(alone) {
  pthread_barrier_init(&g_barrier, NULL, 1);
  SHOW(pthread_barrier_wait(&g_barrier));
  SHOW(pthread_barrier_wait(&g_barrier));
  SHOW(pthread_barrier_destroy(&g_barrier));
}

static void* arrive(void* unused) {
  pthread_barrier_wait(&g_barrier);
  return unused;
}
static int wait_(void) {
  const int result = pthread_barrier_wait(&g_barrier);
  return result == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : result;
}
static void prepare(void) { pthread_barrier_init(&g_barrier, NULL, 2); }
static void release(void) { wait_(); }
static void after(void) { SHOW(pthread_barrier_destroy(&g_barrier)); }

/* The wait at a barrier is not a cancellation point: a cancelled thread goes on waiting. So this probe does not use
 * show_blocking(), but only releases the waiting thread. */
PROBE_IN(two, IN_MAIN | IN_MAIN_OF_MANY | IN_CHILD | IN_WATCHED_CHILD | AT_EXIT) {
  pthread_t thread;
  prepare();
  if (pthread_create(&thread, NULL, arrive, NULL) != 0) return;
  while (arrivals() == 0) sched_yield();
  release();
  pthread_join(thread, NULL);
  after();
}

static void make_anew(void) {
  SHOW(pthread_barrier_init(&g_barrier, NULL, 1));
  SHOW(wait_());
  SHOW(pthread_barrier_destroy(&g_barrier));
}
/* In the child, the barrier still counts the arrival of the lost thread. So the child's arrival completes the round. */
static void arrive_in_child(void) { SHOW(wait_()); }
PROBE_IN(arrivals_of_the_parent, IN_MAIN | IN_MAIN_OF_MANY | IN_CHILD | IN_WATCHED_CHILD | AT_EXIT) {
  pthread_t thread;
  prepare();
  if (pthread_create(&thread, NULL, arrive, NULL) != 0) return;
  while (arrivals() == 0) sched_yield();
  in_child(make_anew);
  in_child(arrive_in_child);
  release();
  pthread_join(thread, NULL);
  after();
}
