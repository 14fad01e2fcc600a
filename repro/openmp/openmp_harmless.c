// Mechanism: none. These uses of OpenMP on both sides of a fork are correct with every runtime:
//            -DNEVER:   the parent starts no region.
//            -DONE:     all teams have one thread.
//            -DCHILD_THREAD: a new thread of the child starts the region.
//            -DUNUSED:  the child starts no region and ends by exit().
//            -DSERIAL:  the child's teams have one thread.
//            -DPAUSED:  the parent has ended its pool (libgomp only).
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <omp.h>
#include <pthread.h>

#include "../baton.h"

__attribute__((noinline)) static int count_threads(int wanted) {
  int threads = 0;
#pragma omp parallel num_threads(wanted)
  {
#pragma omp atomic
    ++threads;
  }
  return threads == wanted ? 0 : 1;
}

#ifdef CHILD_THREAD
static void* thread_main(void* failed) {
  *(int*)failed = count_threads(4);
  return NULL;
}
#endif

static int use_in_child(void) {
#if defined(UNUSED)
  exit(0);
#elif defined(ONE) || defined(SERIAL)
  return count_threads(1);
#elif defined(CHILD_THREAD)
  int failed = 1;
  pthread_t thread;
  pthread_create(&thread, NULL, thread_main, &failed);
  pthread_join(thread, NULL);
  return failed;
#else
  return count_threads(4);
#endif
}

int main(void) {
  int failed = 0;
  omp_set_dynamic(0);
#if defined(ONE)
  failed = count_threads(1);
#elif !defined(NEVER)
  failed = count_threads(4);
#endif
#ifdef PAUSED
  failed |= omp_pause_resource_all(omp_pause_hard);
#endif
  const pid_t child = fork();
  if (child == 0) _exit(use_in_child());
  return failed | end_of(child);
}
