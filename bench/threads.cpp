// Measures the time that the shim adds when threads wait for each other: a contended mutex, two threads that wake each
// other with a condition variable, and a thread that is created and joined. Also measures the time that the shim adds
// to the start of a program.
#include <benchmark/benchmark.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "samples.hpp"

namespace {

using forksight::bench::kLowDecile;
using forksight::bench::kMedian;
using forksight::bench::sample;

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
long g_counter = 0;

// Uses some processor time. Each thread calls this function with the lock held, and again without the lock. So the
// threads contend for the lock.
void work(int steps) {
  for (int i = 0; i < steps; ++i) benchmark::DoNotOptimize(i);
}

void contended(benchmark::State& state) {
  sample<100>(state, kMedian, [] {
    pthread_mutex_lock(&g_mutex);
    ++g_counter;
    work(50);
    pthread_mutex_unlock(&g_mutex);
    work(50);
  });
}

class Table {
 public:
  void hit(bool side) {
    std::unique_lock<std::mutex> lock(mutex_);
    condition_.wait(lock, [&] { return turn_ == side || over_; });
    turn_ = !side;
    condition_.notify_one();
  }
  void end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    condition_.notify_all();
  }
  bool is_over() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return over_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool turn_ = false;
  bool over_ = false;
};

void ping_pong(benchmark::State& state) {
  Table table;
  std::thread other([&] {
    while (!table.is_over()) table.hit(true);
  });
  sample<1>(state, kMedian, [&] { table.hit(false); });
  table.end();
  other.join();
}

void* return_at_once(void* argument) { return argument; }

void create_and_join(benchmark::State& state) {
  sample<1>(state, kLowDecile, [] {
    pthread_t thread{};
    if (pthread_create(&thread, nullptr, return_at_once, nullptr) != 0) std::abort();
    pthread_join(thread, nullptr);
  });
}

// The environment passes LD_PRELOAD on, so a library that is preloaded into this program is preloaded into `true`, too.
void start_true(benchmark::State& state) {
  char name[] = "/bin/true";
  char* arguments[] = {name, nullptr};
  sample<1>(state, kLowDecile, [&] {
    pid_t child = -1;
    int status = -1;
    if (posix_spawn(&child, name, nullptr, nullptr, arguments, environ) != 0) std::abort();
    if (waitpid(child, &status, 0) != child || status != 0) std::abort();
  });
}

BENCHMARK(contended)->Name("mutex/contended")->Threads(2)->UseRealTime();
BENCHMARK(ping_pong)->Name("condition/ping_pong")->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(create_and_join)
    ->Name("thread/create_and_join")
    ->Iterations(500)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(start_true)->Name("start/true")->Iterations(1000)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
