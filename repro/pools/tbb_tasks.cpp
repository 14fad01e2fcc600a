// Mechanism: TBB started a worker for a loop of the parent. The child has no worker. TBB could run a loop of the child
//            on the child's only thread. But if the child enqueues a task for a worker, TBB never runs the task.
// To blame:  the fork after TBB had started its workers.
// User sees: the child stops where it waits for the task, at 0 % CPU.
// Fix:       call tbb::finalize() before fork(), or exec in the child.
// Repaired:  the parent ends TBB's workers before it forks. The child starts its own.
//
// EXPECT-BARE: hang
// EXPECT: lost-thread-pool proven/likely hang culprit="TBB pool of 1 thread" library=libtbb.so.12 victims=1
// EXPECT-WHY: lost-thread-pool proven/likely hang culprit="TBB pool of 1 thread" victims=1
// EXPECT-STACK: fork main@fork
// EXPECT-CORE: lost-thread-pool likely may-hang culprit="TBB pool of 1 thread"
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <new>

#include "../baton.h"
#include "asleep_team.h"

namespace {

// Each of two iterations waits until both have begun. One thread cannot run both, so TBB must start its worker.
void meet() {
  std::atomic<int> begun{0};
  tbb::parallel_for(
      0, 2,
      [&](int) {
        ++begun;
        begun.notify_all();
        for (int seen = begun; seen < 2; seen = begun) begun.wait(seen);
      },
      tbb::simple_partitioner());
}

int sum() {
  std::atomic<int> total{0};
  tbb::parallel_for(0, 1000, [&](int i) { total += i; });
  return total;
}

void enqueue() {
  tbb::task_arena arena(2);
  static std::atomic<int> done{0};
  arena.enqueue([] {
    done = 1;
    done.notify_all();
  });
  done.wait(0);
}

}  // namespace

int main() {
  const tbb::global_control two(tbb::global_control::max_allowed_parallelism, 2);
#ifdef REPAIRED
  tbb::task_scheduler_handle workers{tbb::attach{}};
  meet();
  if (!tbb::finalize(workers, std::nothrow)) return 1;
#else
  meet();
  await_sleep_of_others();  // a worker that is still leaving the arena may hold one of TBB's locks
#endif
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    enqueue();
    _exit(sum() == 499500 ? 0 : 1);
  }
  return end_of(child);
}
