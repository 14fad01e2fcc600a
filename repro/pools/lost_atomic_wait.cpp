// Mechanism: a worker thread of the parent should change an atomic variable and notify its waiters. The child waits for
//            the change.
// To blame:  the fork. fork() copied the variable, but not the thread that changes it.
// User sees: the child stops in std::atomic::wait(), at 0 % CPU.
// Fix:       fork before the worker is started, or start a worker in the child, or exec in the child.
// Repaired:  the worker has changed the variable before the fork.
//
// EXPECT-BARE: hang
// EXPECT: lost-wakeup proven/possible hang culprit="1 lost thread" holder=notifier start=notifier_main victims=1
// EXPECT-WHY: lost-wakeup proven/possible hang culprit="1 lost thread" holder=notifier start=notifier_main victims=1
// EXPECT-STACK: stack await_ready@touch main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CORE: lost-wakeup likely/possible may-hang culprit="1 lost thread" start=notifier_main
#include <pthread.h>

#include <atomic>

#include "../baton.h"

std::atomic<int> ready{0};
baton notifier_runs = baton_make();

void* notifier_main(void*) {
  pthread_setname_np(pthread_self(), "notifier");
#ifdef REPAIRED
  ready.store(1);
  ready.notify_all();
#endif
  baton_pass(notifier_runs);
  park();
  ready.store(1);
  ready.notify_all();
  return nullptr;
}

[[gnu::noinline]] int await_ready() {
  ready.wait(0);  // MARK: touch
  return ready.load();
}

int main() {
  pthread_t thread;
  pthread_create(&thread, nullptr, notifier_main, nullptr);
  baton_wait(notifier_runs);
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    const int value = await_ready();  // MARK: child
    _exit(value == 1 ? 0 : 1);
  }
  return end_of(child);
}
