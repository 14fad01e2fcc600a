// Mechanism: the program has a spin lock of its own (a std::atomic_flag). A worker thread holds the lock while main
//            forks, and the child spins for the lock. The spinning child makes no call. Only the annotations of the
//            lock make the wait visible.
// To blame:  the fork, in a process with another thread that holds locks. It does not matter who implemented the lock.
// User sees: the child takes 100 % CPU for ever.
// Fix:       fork before the worker starts, or exec in the child, or clear the flag in a child handler.
// Repaired:  the worker has released the lock before the fork.
//
// EXPECT-BARE: spin
// EXPECT: orphaned-custom-lock proven hang culprit="queue_lock.flag_ (spin lock)" holder=worker start=worker_main
// EXPECT-STACK: culprit SpinLock::lock@acquired push@take worker_main@fill
// EXPECT-STACK: stack SpinLock::lock@waiting pop@touch main@child
// EXPECT-UNKNOWN: without the annotations of the lock, the spinning looks like any other loop
// EXPECT-CORE: none
#include <pthread.h>

#include <atomic>
#include <mutex>

#include <forksight/annotate.h>

#include "../baton.h"

class SpinLock {
 public:
  [[gnu::noinline]] void lock() {
    if (flag_.test_and_set(std::memory_order_acquire)) {
      FORKSIGHT_LOCK_WAITING(this, "spin lock");  // MARK: waiting
      while (flag_.test_and_set(std::memory_order_acquire)) __builtin_ia32_pause();
    }
    FORKSIGHT_LOCK_ACQUIRED(this, "spin lock");  // MARK: acquired
  }
  void unlock() {
    FORKSIGHT_LOCK_RELEASED(this);
    flag_.clear(std::memory_order_release);
  }

 private:
  std::atomic_flag flag_;
};

SpinLock queue_lock;
int queued = 0;
baton worker_holds = baton_make();

[[gnu::noinline]] int push() {
  const std::lock_guard<SpinLock> guard(queue_lock);  // MARK: take
#ifndef REPAIRED
  baton_pass(worker_holds);
  park();
#endif
  return ++queued;
}

void* worker_main(void*) {
  pthread_setname_np(pthread_self(), "worker");
  if (push() == 0) abort();  // MARK: fill
  baton_pass(worker_holds);
  park();
  return nullptr;
}

[[gnu::noinline]] int pop() {
  const std::lock_guard<SpinLock> guard(queue_lock);  // MARK: touch
  return --queued;
}

int main() {
  pthread_t worker;
  pthread_create(&worker, nullptr, worker_main, nullptr);
  baton_wait(worker_holds);
  const pid_t child = fork();
  if (child == 0) {
    const int left = pop();  // MARK: child
    _exit(left == 0 ? 0 : 1);
  }
  return end_of(child);
}
