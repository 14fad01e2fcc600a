// Mechanism: the program has a pool of its own, whose thread exists only in the parent. The child submits a job as
//            usual, and waits for an answer that never comes.
// To blame:  the fork after the pool was started. No thread holds a lock. A thread is missing.
// User sees: the child stops in a condition variable, at 0 % CPU.
// Fix:       fork before the pool is started, or start it again in the child (pthread_atfork), or exec in the child.
// Repaired:  a child handler starts the pool again.
//
// EXPECT-BARE: hang
// EXPECT: lost-wakeup proven/possible hang culprit="1 lost thread" holder=pool start=pool_main victims=1
// EXPECT-WHY: lost-wakeup proven/possible hang culprit="1 lost thread" holder=pool start=pool_main victims=1
// EXPECT-STACK: culprit start_pool@create main@start
// EXPECT-STACK: fork main@fork
// EXPECT-CORE: lost-wakeup possible may-hang culprit="1 lost thread" start=pool_main
#include <pthread.h>

#include "../baton.h"

struct Pool {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t job_came = PTHREAD_COND_INITIALIZER;
  pthread_cond_t job_done = PTHREAD_COND_INITIALIZER;
  int jobs = 0;
  int done = 0;
};

Pool pool;
baton pool_waits = baton_make();

void* pool_main(void*) {
  pthread_setname_np(pthread_self(), "pool");
  pthread_mutex_lock(&pool.mutex);
  baton_pass(pool_waits);
  for (;;) {
    while (pool.jobs == pool.done) pthread_cond_wait(&pool.job_came, &pool.mutex);
    ++pool.done;
    pthread_cond_signal(&pool.job_done);
  }
}

[[gnu::noinline]] int start_pool() {
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, pool_main, nullptr);  // MARK: create
  baton_wait(pool_waits);
  return error;
}

[[gnu::noinline]] int run_job() {
  pthread_mutex_lock(&pool.mutex);
  const int job = ++pool.jobs;
  pthread_cond_signal(&pool.job_came);
  while (pool.done < job) pthread_cond_wait(&pool.job_done, &pool.mutex);
  pthread_mutex_unlock(&pool.mutex);
  return job;
}

#ifdef REPAIRED
void start_anew() {
  pool = Pool();
  start_pool();
}
#endif

int main() {
#ifdef REPAIRED
  pthread_atfork(nullptr, nullptr, start_anew);
#endif
  const int error = start_pool();  // MARK: start
  if (error != 0 || run_job() != 1) return 1;
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    const int job = run_job();
    _exit(job > 0 ? 0 : 1);
  }
  return end_of(child);
}
