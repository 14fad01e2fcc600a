// Mechanism: a pool's thread waits on a condition variable while main forks. In the child the condition variable still
//            counts that thread as a waiter. ~condition_variable waits until all waiters have left.
// To blame:  the fork, after the pool was started. Besides, the child destroys what the parent made.
// User sees: the child has done its work, and stops in a destructor. If the pool is static, exit() runs the destructor.
// Fix:       do not destroy the pool in the child: call _exit() or exec. Or initialise the condition variable anew in a
//            child handler.
// Repaired:  a child handler constructs a new condition variable in the same memory, without destroying the old one
//            first.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-condvar proven hang holder=pool start=pool_main victims=1
// EXPECT-STACK: culprit pool_main@wait
// EXPECT-STACK: fork main@fork
// EXPECT-CURED: --omp=observe --cure=condvars stdout="child: done"
// EXPECT-CORE: orphaned-condvar proven hang start=pool_main
#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <new>

#include "../baton.h"

struct Pool {
  std::mutex mutex;
  std::condition_variable job_came;
  int jobs = 0;
};

Pool* pool;
baton pool_waits = baton_make();

void* pool_main(void*) {
  pthread_setname_np(pthread_self(), "pool");
  std::unique_lock lock(pool->mutex);
  baton_pass(pool_waits);
  while (pool->jobs == 0) pool->job_came.wait(lock);  // MARK: wait
  return nullptr;
}

#ifdef REPAIRED
void make_anew() { new (&pool->job_came) std::condition_variable; }
#endif

int main() {
#ifdef REPAIRED
  pthread_atfork(nullptr, nullptr, make_anew);
#endif
  pool = new Pool;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, pool_main, nullptr) != 0) return 1;
  baton_wait(pool_waits);
  pool->mutex.lock();  // the pool's thread releases the mutex when the thread begins to wait
  pool->mutex.unlock();
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    delete pool;
    puts("child: done");
    fflush(stdout);
    _exit(0);
  }
  return end_of(child);
}
