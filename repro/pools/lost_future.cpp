// Mechanism: a worker thread of the parent should fulfil a promise. The child has the shared state of the promise, but
//            not the worker, and waits for the future.
// To blame:  the fork while the task is running. std::async and std::packaged_task work in the same way.
// User sees: the child stops in std::future::get(), at 0 % CPU.
// Fix:       fork before the task is started, or start it in the child, or exec in the child.
// Repaired:  the promise has been fulfilled before the fork.
//
// EXPECT-BARE: hang
// EXPECT: lost-wakeup proven/possible hang culprit="1 lost thread" holder=setter start=setter_main victims=1
// EXPECT-WHY: lost-wakeup proven/possible hang culprit="1 lost thread" holder=setter start=setter_main victims=1
// EXPECT-STACK: culprit start_setter@create main@start
// EXPECT-STACK: stack consume@touch main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CORE: lost-wakeup likely/possible may-hang start=setter_main
#include <pthread.h>

#include <future>

#include "../baton.h"

std::promise<int> answer;
baton setter_runs = baton_make();

void* setter_main(void*) {
  pthread_setname_np(pthread_self(), "setter");
#ifdef REPAIRED
  answer.set_value(42);
#endif
  baton_pass(setter_runs);
  park();
  answer.set_value(42);
  return nullptr;
}

[[gnu::noinline]] int start_setter() {
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, setter_main, nullptr);  // MARK: create
  baton_wait(setter_runs);
  return error;
}

[[gnu::noinline]] int consume(std::future<int>& future) {
  const int value = future.get();  // MARK: touch
  return value + 1;
}

int main() {
  std::future<int> future = answer.get_future();
  const int error = start_setter();  // MARK: start
  if (error != 0) return 1;
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    const int value = consume(future);  // MARK: child
    _exit(value == 43 ? 0 : 1);
  }
  return end_of(child);
}
