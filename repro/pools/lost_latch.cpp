// Mechanism: worker threads of the parent count down a std::latch. The child waits until the count is zero, but no
//            thread of the child counts it down.
// To blame:  the fork, between the start of the workers and their end.
// User sees: the child stops in std::latch::wait(), at 0 % CPU.
// Fix:       fork before the workers are started, or wait before the fork, or exec in the child.
// Repaired:  the workers have counted down the latch before the fork.
//
// EXPECT-BARE: hang
// EXPECT: lost-wakeup proven/possible hang culprit="2 lost threads" holder=worker start=worker_main victims=1
// EXPECT-WHY: lost-wakeup proven/possible hang culprit="2 lost threads" holder=worker start=worker_main victims=1
// EXPECT-STACK: stack await_workers@touch main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CORE: lost-wakeup likely/possible may-hang culprit="2 lost threads" start=worker_main
#include <pthread.h>

#include <latch>

#include "../baton.h"

constexpr int kWorkers = 2;
std::latch all_done{kWorkers};
baton worker_runs = baton_make();

void* worker_main(void*) {
  pthread_setname_np(pthread_self(), "worker");
#ifdef REPAIRED
  all_done.count_down();
#endif
  baton_pass(worker_runs);
  park();
  all_done.count_down();
  return nullptr;
}

[[gnu::noinline]] bool await_workers() {
  all_done.wait();  // MARK: touch
  return all_done.try_wait();
}

int main() {
  pthread_t threads[kWorkers];
  for (pthread_t& thread : threads) {
    pthread_create(&thread, nullptr, worker_main, nullptr);
    baton_wait(worker_runs);
  }
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    const bool done = await_workers();  // MARK: child
    _exit(done ? 0 : 1);
  }
  return end_of(child);
}
