// Mechanism: a thread of a pool waits on a condition variable when main forks. In the child a new thread waits there,
//            too. The condition variable counts two waiters. The first broadcast wakes both waiters. The next broadcast
//            waits until both waiters have left, but the first waiter exists only in the parent.
// To blame:  the fork, after the pool was started. Besides, the child handler starts a thread, but does not initialise
//            the condition variable anew.
// User sees: the child does its first job and stops in the second, inside pthread_cond_broadcast(), a function that
//            normally does not block.
// Fix:       initialise the condition variable anew in the child handler, before that handler starts the thread.
// Repaired:  the child handler initialises the condition variable anew.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-condvar proven hang lock=job_came holder=pool start=pool_main victims=1
// EXPECT-STACK: stack run_job@broadcast main@second
// EXPECT-STACK: fork main@fork
// EXPECT-CURED: --omp=observe --cure=condvars stdout="child: job 2 is done"
// EXPECT-WHY: orphaned-condvar proven hang lock=job_came holder=pool start=pool_main victims=1
#include <pthread.h>

#include "../kernel/asleep_in.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_came = PTHREAD_COND_INITIALIZER;
static int jobs;
static pid_t pool;
static struct baton waits, is_done;

static void* pool_main(void* unused) {
  pthread_setname_np(pthread_self(), "pool");
  pool = gettid();
  pthread_mutex_lock(&mutex);
  for (int seen = 0;; seen = jobs) {
    if (seen != 0) baton_pass(is_done);
    baton_pass(waits);
    while (jobs == seen) pthread_cond_wait(&job_came, &mutex);
  }
  return unused;
}

static void start_thread(void) {
  pthread_t thread;
#ifdef REPAIRED
  job_came = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
#endif
  if (pthread_create(&thread, NULL, pool_main, NULL) != 0) abort();
}

__attribute__((noinline)) static void run_job(void) {
  baton_wait(waits);
  pthread_mutex_lock(&mutex); /* the pool's thread releases the mutex when the thread begins to wait */
  ++jobs;
  pthread_cond_broadcast(&job_came);  // MARK: broadcast
  pthread_mutex_unlock(&mutex);
  baton_wait(is_done);
}

int main(void) {
  waits = baton_make();
  is_done = baton_make();
  pthread_atfork(NULL, NULL, start_thread);
  start_thread();
  baton_wait(waits);
  wait_until_in(pool, SYS_futex); /* by then the condition variable counts the thread as a waiter */
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    run_job();
    run_job();  // MARK: second
    printf("child: job %d is done\n", jobs);
    fflush(stdout);
    _exit(0);
  }
  return end_of(child);
}
