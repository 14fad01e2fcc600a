// Mechanism: the destructor of a worker object asks a thread to stop, and waits for the thread's answer. The object is
//            static. So a forked child that calls exit() runs the destructor, too. But the child has no thread that
//            could answer.
// To blame:  exit() in the child. The exit handlers were written for the process that made the threads.
// User sees: a child that has done its work and does not end. The parent waits for the child.
// Fix:       call _exit() in forked children.
// Repaired:  the child calls _exit().
//
// EXPECT-BARE: hang
// EXPECT: inherited-exit-handlers proven/likely hang victims=1
// EXPECT-WHY: inherited-exit-handlers proven/likely hang victims=1
// EXPECT-CORE: inherited-exit-handlers proven/likely hang
#include <atomic>
#include <cstdlib>
#include <thread>

#include "../baton.h"

namespace {

struct Worker {
  enum : int { kRuns, kIsAsked, kHasStopped };
  std::atomic<int> state{kRuns};
  std::thread thread{[this] {
    state.wait(kRuns);
    state = kHasStopped;
    state.notify_all();
  }};

  ~Worker() {
    int before = kRuns;
    if (state.compare_exchange_strong(before, kIsAsked)) state.notify_all();
    while (state != kHasStopped) state.wait(kIsAsked);
    thread.join();
  }
};

}  // namespace

int main() {
  static Worker worker;
  const pid_t child = fork();
  if (child == 0) {
#ifdef REPAIRED
    _exit(worker.state);
#else
    std::exit(worker.state);
#endif
  }
  return end_of(child);
}
