// Mechanism: a thread is to fulfil a promise, and does so in the parent, after the fork; by the time of the hang it has
//            ended there. The child, which has the promise unset and not the thread, waits for ever. With -DLOCK it is a
//            lock of the program's own, which that thread had at the fork.
// To blame:  the fork, while a task was under way. That the thread is gone in the parent, too, changes nothing.
// User sees: a child that waits, and a parent with one thread only.
// Fix:       fork before the task is started, or when it is done.
// Repaired:  the child is forked when it is done.
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
