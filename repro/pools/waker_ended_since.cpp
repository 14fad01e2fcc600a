// Mechanism: a thread should fulfil a promise. In the parent the thread fulfils the promise after the fork, and has
//            ended by the time of the hang. In the child the promise is not set, and the thread does not exist. The
//            child waits for ever. With -DLOCK the child waits instead for a lock of the program's own, which that
//            thread held at the fork.
// To blame:  the fork while a task was running. It makes no difference that the thread has ended in the parent, too.
// User sees: a child that waits, and a parent that has one thread only.
// Fix:       fork before the task is started, or after it has ended.
// Repaired:  main forks after the task has ended.
//
// EXPECT-BARE: hang
// EXPECT: lost-wakeup proven/possible hang culprit="1 lost thread" victims=1
#include <atomic>
#include <future>
#include <thread>

#include "../baton.h"

namespace {

baton is_under_way = baton_make();
baton may_end = baton_make();

#ifdef LOCK
std::atomic<int> lock_word{0};

void lock() {
  for (int before = 0; !lock_word.compare_exchange_strong(before, 1); before = 0) lock_word.wait(1);
}

void unlock() {
  lock_word = 0;
  lock_word.notify_one();
}

void run_task() {
  lock();
  baton_pass(is_under_way);
  baton_wait(may_end);
  unlock();
}

void wait_for_it() { lock(); }
#else
std::promise<int> answer;
std::shared_future<int> future = answer.get_future().share();

void run_task() {
  baton_pass(is_under_way);
  baton_wait(may_end);
  answer.set_value(1);
}

void wait_for_it() { future.get(); }
#endif

pid_t fork_child() {
  const pid_t child = fork();
  if (child != 0) return child;
  wait_for_it();
  _exit(0);
}

}  // namespace

int main() {
  std::thread thread(run_task);
  baton_wait(is_under_way);
#ifndef REPAIRED
  const pid_t child = fork_child();
#endif
  baton_pass(may_end);
  thread.join();
#ifdef REPAIRED
  const pid_t child = fork_child();
#endif
  return end_of(child);
}
