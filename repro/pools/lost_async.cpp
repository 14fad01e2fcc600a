// Mechanism: a task of std::async is running at the fork. The child has the future, but not the thread that computes
//            the result.
// To blame:  the fork while the task is running.
// User sees: the child stops in std::future::get(), at 0 % CPU.
// Fix:       call std::async in the child. Or fork before the task is started, or exec in the child.
// Repaired:  the child calls std::async itself.
//
// EXPECT-BARE: hang
// EXPECT: lost-wakeup proven/possible hang culprit="1 lost thread" victims=1
#include <future>

#include "../baton.h"

static baton task_runs = baton_make();

static int compute() {
  baton_pass(task_runs);
  park();
  return 42;
}

[[gnu::noinline]] static int consume(std::future<int>& future) {
  const int value = future.get();  // MARK: touch
  return value + 1;
}

int main() {
  [[maybe_unused]] auto* const future = new std::future<int>(std::async(std::launch::async, compute));
  baton_wait(task_runs);
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
#ifdef REPAIRED
    std::future<int> own = std::async(std::launch::async, [] { return 42; });
    _exit(consume(own) == 43 ? 0 : 1);
#else
    _exit(consume(*future) == 43 ? 0 : 1);
#endif
  }
  _exit(end_of(child));  // the parent's task never ends
}
