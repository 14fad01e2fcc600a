// Mechanism: two threads of a pool wait on a condition variable. One of them has been woken once, and waits again. In
//            the child a new thread waits there, too. The first signal in the child goes to one of the two waiters that
//            exist only in the parent.
// To blame:  the fork, after the pool was started. Besides, the child handler starts a thread, but does not initialise
//            the condition variable anew.
// User sees: a wake-up that is lost: the child has submitted its job, and its new thread goes on sleeping.
// Fix:       initialise the condition variable anew in the child handler, before that handler starts the thread.
// Repaired:  the child handler initialises the condition variable anew.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-condvar proven hang lock=job_came holder=pool start=pool_main victims=1
// EXPECT-STACK: stack run_job@signal main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CURED: --omp=observe --cure=condvars stdout="child: job 2 is done"
// EXPECT-WHY: lost-wakeup proven/possible hang victims=1
// EXPECT-CORE: lost-wakeup possible may-hang start=pool_main
#include <pthread.h>

#include "../baton.h"

enum { kThreads = 2 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_came = PTHREAD_COND_INITIALIZER;
static pthread_cond_t job_done = PTHREAD_COND_INITIALIZER;
static int jobs;
static int done;
static struct baton waits;

static void* pool_main(void* unused) {
  pthread_setname_np(pthread_self(), "pool");
  pthread_mutex_lock(&mutex);
  for (;;) {
    baton_pass(waits);
    while (jobs == done) pthread_cond_wait(&job_came, &mutex);
    ++done;
    pthread_cond_signal(&job_done);
  }
  return unused;
}

static void start_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, pool_main, NULL) != 0) abort();
  baton_wait(waits);
  pthread_mutex_lock(&mutex); /* the new thread releases the mutex when the thread begins to wait */
  pthread_mutex_unlock(&mutex);
}

__attribute__((noinline)) static int run_job(void) {
  pthread_mutex_lock(&mutex);
  const int job = ++jobs;
  pthread_cond_signal(&job_came);  // MARK: signal
  while (done < job) pthread_cond_wait(&job_done, &mutex);
  pthread_mutex_unlock(&mutex);
  return job;
}

static void start_anew(void) {
#ifdef REPAIRED
  job_came = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
#endif
  start_thread();
}

int main(void) {
  waits = baton_make();
  pthread_atfork(NULL, NULL, start_anew);
  for (int i = 0; i < kThreads; ++i) start_thread();
  if (run_job() != 1) return 1;
  baton_wait(waits);
  pthread_mutex_lock(&mutex); /* the threads release the mutex when they begin to wait */
  pthread_mutex_unlock(&mutex);
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    printf("child: job %d is done\n", run_job());  // MARK: child
    fflush(stdout);
    _exit(0);
  }
  return end_of(child);
}
