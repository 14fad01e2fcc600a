// What the shim adds to fork(): with 1, 16, 64 and 256 other threads, one of them holding a lock or none, and with 1
// GiB of memory in use. `call` is what the parent waits for; `whole` ends when the child has ended and was waited for.
#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <chrono>

#include "idle_threads.hpp"

namespace {

using forksight::bench::IdleThreads;

pthread_mutex_t g_held = PTHREAD_MUTEX_INITIALIZER;

void fork_cycle(benchmark::State& state, bool whole) {
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

template <bool kWhole>
void with_threads(benchmark::State& state) {
  const IdleThreads idle(state.range(0), state.range(1) != 0 ? &g_held : nullptr);
  fork_cycle(state, kWhole);
}

// Its page tables are most of what a fork copies.
template <bool kWhole>
void with_heap(benchmark::State& state) {
  constexpr std::size_t kBytes = std::size_t{1} << 30U;
  void* const heap = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (heap == MAP_FAILED) {
    state.SkipWithError("no memory");
    return;
  }
  madvise(heap, kBytes, MADV_NOHUGEPAGE);
  for (std::size_t at = 0; at < kBytes; at += 4096) static_cast<volatile char*>(heap)[at] = 1;
  with_threads<kWhole>(state);
  munmap(heap, kBytes);
}

void vary_threads(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"threads", "held"})->UseManualTime()->Unit(benchmark::kMicrosecond);
  for (const int threads : {1, 16, 64, 256}) benchmark->Args({threads, 0})->Args({threads, 1});
}
void vary_heap(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"threads", "held"})->UseManualTime()->Unit(benchmark::kMicrosecond);
  benchmark->Args({1, 0})->Args({1, 1});
}

BENCHMARK(with_threads<false>)->Name("fork_call")->Apply(vary_threads);
BENCHMARK(with_threads<true>)->Name("fork_whole")->Apply(vary_threads);
BENCHMARK(with_heap<false>)->Name("fork_call_1GiB")->Apply(vary_heap);
BENCHMARK(with_heap<true>)->Name("fork_whole_1GiB")->Apply(vary_heap);

}  // namespace

BENCHMARK_MAIN();
