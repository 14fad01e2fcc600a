// Mechanism: a barrier is made for three threads. One of them has no work, and ends without arriving at the barrier.
// To blame:  the count of the barrier, or the thread that does not arrive.
// User sees: all remaining threads stop in pthread_barrier_wait().
// Fix:       make the barrier for as many threads as arrive at it. A thread that gives up must arrive all the same.
// Repaired:  the thread without work arrives.
//
// EXPECT-BARE: hang
// EXPECT: deadlock proven/unknown hang culprit="2 threads" victims=0
#include <pthread.h>
#include <stddef.h>

static pthread_barrier_t all_here;

static void* idle_main(void* unused) {
#ifdef REPAIRED
  pthread_barrier_wait(&all_here);
#endif
  return unused;
}

static void* worker_main(void* unused) {
  pthread_barrier_wait(&all_here);
  return unused;
}

int main(void) {
  pthread_t idle;
  pthread_t worker;
  pthread_barrier_init(&all_here, NULL, 3);
  pthread_create(&idle, NULL, idle_main, NULL);
#ifndef REPAIRED
  pthread_join(idle, NULL);
#endif
  pthread_create(&worker, NULL, worker_main, NULL);
  pthread_barrier_wait(&all_here);
  pthread_join(worker, NULL);
#ifdef REPAIRED
  pthread_join(idle, NULL);
#endif
  return 0;
}
