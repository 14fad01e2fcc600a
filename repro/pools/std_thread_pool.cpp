// Mechanism: the program has a pool of std::threads, which exists only in the parent. The child submits a job as usual,
//            and waits for a result that no thread sets.
// To blame:  the fork after the pool was started.
// User sees: the child stops in std::future::get, at 0 % CPU.
// Fix:       fork before the pool is started, or start it again in the child (pthread_atfork), or exec in the child.
// Repaired:  the child makes a pool of its own.
//
// EXPECT-BARE: hang
// EXPECT: lost-thread-pool proven/likely hang culprit="pool of 2 std::threads" library=std_thread_pool victims=1
// EXPECT-STACK: fork main@fork
// EXPECT-WHY: lost-thread-pool proven/likely hang culprit="pool of 2 std::threads" victims=1
// EXPECT-CORE: lost-thread-pool likely may-hang culprit="pool of 2 std::threads" library=std_thread_pool
#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <thread>
#include <vector>

#include "../baton.h"

namespace {

class Pool {
 public:
  explicit Pool(int size) : started_(size) {
    for (int i = 0; i < size; ++i) threads_.emplace_back([this] { work(); });
    started_.wait();  // forksight knows the start routine of a thread only after the thread has begun to run
  }
  std::future<int> submit(int value) {
    std::packaged_task<int()> task([value] { return value; });
    auto result = task.get_future();
    {
      const std::lock_guard guard(mutex_);
      tasks_.push_back(std::move(task));
    }
    came_.release();
    return result;
  }

 private:
  [[noreturn]] void work() {
    started_.count_down();
    for (;;) {
      came_.acquire();
      std::packaged_task<int()> task;
      {
        const std::lock_guard guard(mutex_);
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  std::latch started_;
  std::mutex mutex_;
  std::counting_semaphore<> came_{0};
  std::deque<std::packaged_task<int()>> tasks_;
  std::vector<std::thread> threads_;
};

}  // namespace

int main() {
  auto* pool = new Pool(2);
  if (pool->submit(7).get() != 7) return 1;
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
#ifdef REPAIRED
    pool = new Pool(2);
#endif
    const int value = pool->submit(8).get();
    _exit(value == 8 ? 0 : 1);
  }
  return end_of(child);
}
