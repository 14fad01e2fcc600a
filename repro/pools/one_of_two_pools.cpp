// Mechanism: a program has two pools of std::threads. A forked child has the threads of neither pool. The child submits
//            work to one of the pools, and waits. The child's memory does not show for which of the two pools it waits.
// To blame:  fork() in a process with pools.
// User sees: the child stops in std::future::get().
// Fix:       let the child make a pool of its own.
// Repaired:  the child makes a pool of its own.
//
// EXPECT-BARE: hang
// EXPECT: lost-wakeup proven/possible hang culprit="5 lost threads" victims=1
// EXPECT-STACK: stack Pool::run_one@touch main@child
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "../baton.h"

class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }

  [[gnu::noinline]] int run_one() {
    const auto answer = std::make_shared<std::promise<int>>();
    std::future<int> future = answer->get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back([answer] { answer->set_value(1); });
    }
    has_task_.notify_one();
    const int value = future.get();  // MARK: touch
    return value;
  }

  // Returns when all threads of the pool wait for work.
  void await_idle() {
    for (bool is_idle = false; !is_idle;) {
      const std::lock_guard lock(mutex_);
      is_idle = idle_ == static_cast<int>(threads_.size());
    }
  }

 private:
  [[noreturn]] void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      ++idle_;
      has_task_.wait(lock, [this] { return !tasks_.empty(); });
      --idle_;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable has_task_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  int idle_ = 0;
};

int main() {
  Pool* const io = new Pool(2);
  Pool* const compute = new Pool(3);
  // The pools get no work before the fork. A call of notify_one() there may leave a thread half inside of its wait. In
  // the child, notify_one() would then wait for that thread.
  io->await_idle();
  compute->await_idle();
  const pid_t child = fork();
  if (child == 0) {
#ifdef REPAIRED
    Pool* const own = new Pool(1);
    const int value = own->run_one();
#else
    const int value = compute->run_one();  // MARK: child
#endif
    _exit(value == 1 ? 0 : 1);
  }
  _exit(end_of(child));
}
