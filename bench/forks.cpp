// Measures the time that the shim adds to fork(). There are 1, 16, 64 or 256 other threads. Either one of them or none
// holds a lock. Some forks happen with 1 GiB of memory in use. `call` is the time until fork() returns in the parent.
// `whole` is the time until the parent has waited for the end of the child.
#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "idle_threads.hpp"
#include "samples.hpp"

namespace {

using forksight::bench::Clock;
using forksight::bench::IdleThreads;
using forksight::bench::kLowDecile;
using forksight::bench::Samples;

pthread_mutex_t g_held = PTHREAD_MUTEX_INITIALIZER;

void fork_cycle(benchmark::State& state) {
  const IdleThreads idle(state.range(0), state.range(1) != 0 ? &g_held : nullptr);
  Samples call;
  Samples whole;
  for (auto _ : state) {
    const auto begin = Clock::now();
    const pid_t child = fork();
    if (child == 0) _exit(0);
    const auto forked = Clock::now();
    if (child < 0 || waitpid(child, nullptr, 0) != child) state.SkipWithError("fork or waitpid failed");
    call.add(forked - begin);
    whole.add(Clock::now() - begin);
  }
  state.counters["call"] = call.quantile(kLowDecile);
  state.counters["whole"] = whole.quantile(kLowDecile);
}

// Measures a fork with 1 GiB of memory in use. Most of the time of this fork is spent copying the page tables of the
// memory.
void fork_with_heap(benchmark::State& state) {
  constexpr std::size_t kBytes = std::size_t{1} << 30U;
  void* const heap = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (heap == MAP_FAILED) {
    state.SkipWithError("no memory");
    return;
  }
  madvise(heap, kBytes, MADV_NOHUGEPAGE);
  for (std::size_t at = 0; at < kBytes; at += 4096) static_cast<volatile char*>(heap)[at] = 1;
  fork_cycle(state);
  munmap(heap, kBytes);
}

BENCHMARK(fork_cycle)
    ->Name("fork")
    ->ArgNames({"threads", "held"})
    ->ArgsProduct({{1, 16, 64, 256}, {0, 1}})
    ->Iterations(100)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
// A round has only a few forks, because each takes tens of milliseconds.
BENCHMARK(fork_with_heap)
    ->Name("fork_1GiB")
    ->ArgNames({"threads", "held"})
    ->ArgsProduct({{1}, {0, 1}})
    ->Iterations(5)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
