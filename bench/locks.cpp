// Measures the time that the shim adds to acquiring and releasing an uncontended lock. Some benchmarks run before the
// process creates a second thread: until then, glibc uses no atomic instructions. The others run after that.
#include <benchmark/benchmark.h>
#include <pthread.h>
#include <semaphore.h>

#include <mutex>

#include "idle_threads.hpp"
#include "samples.hpp"

namespace {

using forksight::bench::IdleThreads;

template <typename Pair>
void measure(benchmark::State& state, Pair pair) {
  forksight::bench::sample<1000>(state, forksight::bench::kLowDecile, pair);
}

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_outer = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t g_rwlock = PTHREAD_RWLOCK_INITIALIZER;
std::mutex g_std_mutex;

void mutex_pair(benchmark::State& state) {
  measure(state, [&] {
    pthread_mutex_lock(&g_mutex);
    pthread_mutex_unlock(&g_mutex);
  });
}
void nested_pair(benchmark::State& state) {
  measure(state, [&] {
    pthread_mutex_lock(&g_outer);
    pthread_mutex_lock(&g_mutex);
    pthread_mutex_unlock(&g_mutex);
    pthread_mutex_unlock(&g_outer);
  });
}
void std_mutex_pair(benchmark::State& state) {
  measure(state, [&] {
    const std::lock_guard<std::mutex> guard(g_std_mutex);
    benchmark::ClobberMemory();
  });
}
void rwlock_pair(benchmark::State& state) {
  measure(state, [&] {
    pthread_rwlock_rdlock(&g_rwlock);
    pthread_rwlock_unlock(&g_rwlock);
  });
}
void semaphore_pair(benchmark::State& state) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 1);
  measure(state, [&] {
    sem_wait(&semaphore);
    sem_post(&semaphore);
  });
  sem_destroy(&semaphore);
}
void spin_pair(benchmark::State& state) {
  pthread_spinlock_t spin;
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  measure(state, [&] {
    pthread_spin_lock(&spin);
    pthread_spin_unlock(&spin);
  });
  pthread_spin_destroy(&spin);
}

template <void (*Body)(benchmark::State&)>
void with_thread(benchmark::State& state) {
  const IdleThreads idle(1);
  Body(state);
}

// These benchmarks come first, because the process must not have created another thread before them.
BENCHMARK(mutex_pair)->Name("mutex/no_threads");
BENCHMARK(std_mutex_pair)->Name("std_mutex/no_threads");
BENCHMARK(with_thread<mutex_pair>)->Name("mutex/threads");
BENCHMARK(with_thread<nested_pair>)->Name("nested_mutexes/threads");
BENCHMARK(with_thread<std_mutex_pair>)->Name("std_mutex/threads");
BENCHMARK(with_thread<rwlock_pair>)->Name("rwlock_read/threads");
BENCHMARK(with_thread<semaphore_pair>)->Name("semaphore/threads");
BENCHMARK(with_thread<spin_pair>)->Name("spinlock/threads");

}  // namespace

BENCHMARK_MAIN();
