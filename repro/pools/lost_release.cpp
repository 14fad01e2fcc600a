// Mechanism: a producer thread of the parent releases a std::counting_semaphore for each item. The child acquires the
//            semaphore, but has no thread that releases it.
// To blame:  the fork, after the producer was started.
// User sees: the child stops in std::counting_semaphore::acquire(), at 0 % CPU.
// Fix:       fork before the producer is started, or start a producer in the child, or exec in the child.
// Repaired:  the producer has released one item before the fork.
//
// EXPECT-BARE: hang
// EXPECT: lost-wakeup proven/possible hang culprit="1 lost thread" holder=producer start=producer_main victims=1
// EXPECT-WHY: lost-wakeup proven/possible hang culprit="1 lost thread" holder=producer start=producer_main victims=1
// EXPECT-STACK: stack take_item@touch main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CORE: lost-wakeup likely/possible may-hang culprit="1 lost thread" start=producer_main
#include <pthread.h>

#include <semaphore>

#include "../baton.h"

std::counting_semaphore<64> items{0};
baton producer_runs = baton_make();

void* producer_main(void*) {
  pthread_setname_np(pthread_self(), "producer");
#ifdef REPAIRED
  items.release();
#endif
  baton_pass(producer_runs);
  park();
  items.release();
  return nullptr;
}

[[gnu::noinline]] bool take_item() {
  items.acquire();  // MARK: touch
  return !items.try_acquire();
}

int main() {
  pthread_t thread;
  pthread_create(&thread, nullptr, producer_main, nullptr);
  baton_wait(producer_runs);
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    const bool taken = take_item();  // MARK: child
    _exit(taken ? 0 : 1);
  }
  return end_of(child);
}
