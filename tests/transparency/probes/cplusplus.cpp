// Functions of the C++ library that call hooked functions. Exceptions and forced unwinding also pass through frames of
// the hooks.
#include <condition_variable>
#include <future>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

#include "probe.h"

namespace {

using namespace std::chrono_literals;

struct Destroyed {
  const char* what;
  ~Destroyed() { say("  destroyed %s", what); }
};

void throw_from_thread() {
  try {
    const Destroyed local{"local"};
    throw std::runtime_error("thrown");
  } catch (const std::exception& error) {
    say("  caught %s", error.what());
  }
}

thread_local Destroyed t_destroyed{"thread-local"};

}  // namespace

PROBE(locks) {
  std::timed_mutex timed;
  std::recursive_timed_mutex recursive;
  std::shared_timed_mutex shared;
  SHOW(timed.try_lock_for(0s));
  SHOW(timed.try_lock_until(std::chrono::system_clock::now()));
  SHOW(timed.try_lock_until(std::chrono::steady_clock::now()));
  timed.unlock();
  SHOW(recursive.try_lock_for(1ms));
  SHOW(recursive.try_lock());
  recursive.unlock();
  recursive.unlock();
  SHOW(shared.try_lock_shared_for(1ms));
  SHOW(shared.try_lock_for(1ms));
  shared.unlock_shared();
  SHOW(shared.try_lock());
  shared.unlock();
  std::counting_semaphore<4> semaphore(1);
  SHOW(semaphore.try_acquire());
  SHOW(semaphore.try_acquire_for(1ms));
  semaphore.release();
  SHOW(semaphore.try_acquire());
  try {
    std::mutex mutex;
    std::unique_lock<std::mutex> one(mutex);
    one.lock();
  } catch (const std::system_error& error) {
    say("  %d", error.code().value());
  }
}

PROBE(waiting) {
  std::mutex mutex;
  std::condition_variable condition;
  bool ready = false;
  std::thread thread([&] {
    const std::lock_guard<std::mutex> guard(mutex);
    ready = true;
    condition.notify_all();
  });
  std::unique_lock<std::mutex> lock(mutex);
  condition.wait(lock, [&] { return ready; });
  SHOW(static_cast<int>(condition.wait_for(lock, 1ms)));
  lock.unlock();
  thread.join();
  SHOW(std::async(std::launch::async, [] { return 42; }).get());
  std::once_flag once;
  for (int i = 0; i < 2; ++i) std::call_once(once, [] { say("  once"); });
}

// The unwinder needs more stack than the smallest stack has.
PROBE_IN(unwinding, ANYWHERE & ~IN_SMALL_THREAD) {
  std::thread(throw_from_thread).join();
  std::thread([] {
    t_destroyed.what = "thread-local of a thread that leaves by pthread_exit";
    const Destroyed local{"frame left by pthread_exit"};
    pthread_exit(nullptr);
  }).join();
  std::packaged_task<int()> task([]() -> int { throw std::logic_error("kept"); });
  auto future = task.get_future();
  std::thread(std::move(task)).join();
  try {
    future.get();
  } catch (const std::exception& error) {
    say("  %s", error.what());
  }
}
