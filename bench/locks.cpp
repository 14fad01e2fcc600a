// What the shim costs: the same program, run bare and under LD_PRELOAD by bench/compare.py, which prints ratios.
//
// Uncontended acquire+release pairs, in a process that never had a second thread (glibc elides its atomics there) and
// in one that has. fork with 1, 16 and 64 idle threads: the call alone as the parent sees it, and until the child's
// end has been waited for.
#include <benchmark/benchmark.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace {

// Threads that sleep in a pipe until the object goes.
class IdleThreads {
 public:
  explicit IdleThreads(std::int64_t count) {
    if (pipe(pipe_) != 0) std::abort();
    for (std::int64_t i = 0; i < count; ++i) {
      threads_.emplace_back([fd = pipe_[0]] {
        char byte = 0;
        [[maybe_unused]] const auto got = read(fd, &byte, 1);
      });
    }
  }
  ~IdleThreads() {
    close(pipe_[1]);
    for (std::thread& thread : threads_) thread.join();
    close(pipe_[0]);
  }
  IdleThreads(const IdleThreads&) = delete;
  IdleThreads& operator=(const IdleThreads&) = delete;

 private:
  int pipe_[2] = {-1, -1};
  std::vector<std::thread> threads_;
};

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t g_rwlock = PTHREAD_RWLOCK_INITIALIZER;
std::mutex g_std_mutex;

void mutex_pair(benchmark::State& state) {
  for (auto _ : state) {
    pthread_mutex_lock(&g_mutex);
    pthread_mutex_unlock(&g_mutex);
  }
}
void std_mutex_pair(benchmark::State& state) {
  for (auto _ : state) {
    const std::lock_guard<std::mutex> guard(g_std_mutex);
    benchmark::ClobberMemory();
  }
}
void rwlock_pair(benchmark::State& state) {
  for (auto _ : state) {
    pthread_rwlock_rdlock(&g_rwlock);
    pthread_rwlock_unlock(&g_rwlock);
  }
}
void semaphore_pair(benchmark::State& state) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 1);
  for (auto _ : state) {
    sem_wait(&semaphore);
    sem_post(&semaphore);
  }
  sem_destroy(&semaphore);
}
void spin_pair(benchmark::State& state) {
  pthread_spinlock_t spin;
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  for (auto _ : state) {
    pthread_spin_lock(&spin);
    pthread_spin_unlock(&spin);
  }
  pthread_spin_destroy(&spin);
}

template <void (*Body)(benchmark::State&)>
void with_thread(benchmark::State& state) {
  const IdleThreads idle(1);
  Body(state);
}

void fork_cycle(benchmark::State& state, bool whole) {
  const IdleThreads idle(state.range(0));
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    const pid_t child = fork();
    if (child == 0) _exit(0);
    const auto forked = std::chrono::steady_clock::now();
    if (child < 0 || waitpid(child, nullptr, 0) != child) state.SkipWithError("fork or waitpid failed");
    const auto end = whole ? std::chrono::steady_clock::now() : forked;
    state.SetIterationTime(std::chrono::duration<double>(end - begin).count());
  }
}
void fork_call(benchmark::State& state) { fork_cycle(state, false); }
void fork_and_wait(benchmark::State& state) { fork_cycle(state, true); }

// These come first: no thread has been made yet.
BENCHMARK(mutex_pair)->Name("mutex/no_threads");
BENCHMARK(std_mutex_pair)->Name("std_mutex/no_threads");
BENCHMARK(with_thread<mutex_pair>)->Name("mutex/threads");
BENCHMARK(with_thread<std_mutex_pair>)->Name("std_mutex/threads");
BENCHMARK(with_thread<rwlock_pair>)->Name("rwlock_read/threads");
BENCHMARK(with_thread<semaphore_pair>)->Name("semaphore/threads");
BENCHMARK(with_thread<spin_pair>)->Name("spinlock/threads");
BENCHMARK(fork_call)->Name("fork_call")->Arg(1)->Arg(16)->Arg(64)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(fork_and_wait)
    ->Name("fork_and_wait")
    ->Arg(1)
    ->Arg(16)
    ->Arg(64)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
