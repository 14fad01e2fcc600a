// Mechanism: a task of a pool with one thread submits another task to the same pool and waits for it. The only thread
//            that could run the second task is the one that waits.
// To blame:  the first task, which waits for its own pool.
// User sees: the job stops when all threads of the pool wait. Main and the pool's threads are in future::get().
// Fix:       run the second task in the first one, or return its future instead of waiting. Or use a pool whose threads
//            run other tasks while they wait.
// Repaired:  the first task calls the second one itself.
//
// EXPECT-BARE: hang
// EXPECT: deadlock proven/unknown hang culprit="2 threads" victims=0
// EXPECT-WHY: deadlock proven/unknown hang culprit="2 threads" victims=0
// EXPECT-STACK: stack main@whole
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include <pthread.h>

namespace {

class Pool {
 public:
  Pool() : worker_([this] { work(); }) {}
  ~Pool() {
    submit([this] { is_done_ = true; return 0; }).get();
    worker_.join();
  }

  std::future<int> submit(std::function<int()> task) {
    std::packaged_task<int()> packaged(std::move(task));
    std::future<int> result = packaged.get_future();
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(packaged));
    has_task_.notify_one();
    return result;
  }

 private:
  void work() {
    pthread_setname_np(pthread_self(), "worker");
    while (!is_done_) {
      std::unique_lock lock(mutex_);
      has_task_.wait(lock, [this] { return !tasks_.empty(); });
      std::packaged_task<int()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable has_task_;
  std::deque<std::packaged_task<int()>> tasks_;
  bool is_done_ = false;
  std::thread worker_;
};

int half() { return 21; }

}  // namespace

int main() {
  Pool pool;
  std::future<int> whole = pool.submit([&pool] {
#ifdef REPAIRED
    (void)pool;
    return half() + half();
#else
    return half() + pool.submit(half).get();
#endif
  });
  return whole.get() == 42 ? 0 : 1;  // MARK: whole
}
