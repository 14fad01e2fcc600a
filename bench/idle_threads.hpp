// Threads that sleep in a read of a pipe until the object is destroyed.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

namespace forksight::bench {

class IdleThreads {
 public:
  // If `mutex` is given, the first thread holds it as long as this object exists.
  explicit IdleThreads(std::int64_t count, pthread_mutex_t* mutex = nullptr) {
    if (pipe(stop_) != 0 || pipe(ready_) != 0) std::abort();
    for (std::int64_t i = 0; i < count; ++i)
      threads_.emplace_back([this, held = i == 0 ? mutex : nullptr] { run(held); });
    for (std::int64_t i = 0; i < count; ++i) expect(read(ready_[0], &byte_, 1) == 1);
  }
  ~IdleThreads() {
    close(stop_[1]);
    for (std::thread& thread : threads_) thread.join();
    close(stop_[0]);
    close(ready_[0]);
    close(ready_[1]);
  }
  IdleThreads(const IdleThreads&) = delete;
  IdleThreads& operator=(const IdleThreads&) = delete;

 private:
  static void expect(bool held) {
    if (!held) std::abort();
  }
  void run(pthread_mutex_t* mutex) {
    char byte = 0;
    if (mutex != nullptr) pthread_mutex_lock(mutex);
    expect(write(ready_[1], &byte, 1) == 1);
    expect(read(stop_[0], &byte, 1) == 0);
    if (mutex != nullptr) pthread_mutex_unlock(mutex);
  }

  int stop_[2] = {-1, -1};
  int ready_[2] = {-1, -1};
  char byte_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace forksight::bench
