// Mechanism: a supervisor forks a pool process, which forks a worker. The worker hangs in job_mutex, which a thread of
//            the pool process held at the fork. The pool process waits for the worker. The supervisor waits for the
//            pool process.
// To blame:  the fork in the pool process. The two other processes only wait.
// User sees: a tree of three processes, all asleep. The supervisor, at which people look first, is in waitpid().
// Fix:       start the pool's threads after the workers are forked.
// Repaired:  the pool's thread has unlocked the mutex before the fork.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-mutex proven hang lock=job_mutex holder=feeder start=feeder_main victims=2
// EXPECT-STACK: culprit feed@acquire feeder_main@feed
// EXPECT-STACK: stack take_job@touch run_pool@work main@pool
// EXPECT-STACK: fork run_pool@fork main@pool
// EXPECT-CORE: orphaned-mutex proven/possible hang lock=job_mutex
#include <pthread.h>

#include "../baton.h"

static pthread_mutex_t job_mutex = PTHREAD_MUTEX_INITIALIZER;
static int jobs = 1;
static struct baton feeder_is_ready;

__attribute__((noinline)) static int feed(void) {
  pthread_mutex_lock(&job_mutex);  // MARK: acquire
  const int now = jobs;
#ifndef REPAIRED
  baton_pass(feeder_is_ready);
  park();
#endif
  pthread_mutex_unlock(&job_mutex);
  return now;
}

static void* feeder_main(void* unused) {
  pthread_setname_np(pthread_self(), "feeder");
  jobs = feed();  // MARK: feed
  baton_pass(feeder_is_ready);
  park();
  return unused;
}

__attribute__((noinline)) static int take_job(void) {
  pthread_mutex_lock(&job_mutex);  // MARK: touch
  const int job = jobs--;
  pthread_mutex_unlock(&job_mutex);
  return job;
}

__attribute__((noinline)) static int run_pool(void) {
  pthread_t feeder;
  feeder_is_ready = baton_make();
  pthread_create(&feeder, NULL, feeder_main, NULL);
  baton_wait(feeder_is_ready);
  const pid_t worker = fork();  // MARK: fork
  if (worker == 0) {
    const int job = take_job();  // MARK: work
    _exit(job == 1 ? 0 : 1);
  }
  return end_of(worker);
}

int main(void) {
  const pid_t pool = fork();
  if (pool == 0) {
    const int status = run_pool();  // MARK: pool
    _exit(status);
  }
  return end_of(pool);
}
