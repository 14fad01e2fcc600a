// Measures the time of an annotation: compares an uncontended spin lock with and without the annotations of
// <forksight/annotate.h>. Without the shim, the difference is a load and a branch for each annotation. Under the shim,
// the difference is the time of the hooks.
#include <benchmark/benchmark.h>

#include <atomic>

#include "forksight/annotate.h"
#include "samples.hpp"

namespace {

using forksight::bench::kLowDecile;
using forksight::bench::sample;

std::atomic_flag g_flag;

[[gnu::noinline]] void lock_bare(std::atomic_flag& flag) {
  while (flag.test_and_set(std::memory_order_acquire)) {
  }
}
[[gnu::noinline]] void unlock_bare(std::atomic_flag& flag) { flag.clear(std::memory_order_release); }

[[gnu::noinline]] void lock_annotated(std::atomic_flag& flag) {
  if (flag.test_and_set(std::memory_order_acquire)) {
    FORKSIGHT_LOCK_WAITING(&flag, "spin lock");
    while (flag.test_and_set(std::memory_order_acquire)) {
    }
  }
  FORKSIGHT_LOCK_ACQUIRED(&flag, "spin lock");
}
[[gnu::noinline]] void unlock_annotated(std::atomic_flag& flag) {
  FORKSIGHT_LOCK_RELEASED(&flag);
  flag.clear(std::memory_order_release);
}

void bare(benchmark::State& state) {
  sample<1000>(state, kLowDecile, [] {
    lock_bare(g_flag);
    unlock_bare(g_flag);
  });
}
void annotated(benchmark::State& state) {
  sample<1000>(state, kLowDecile, [] {
    lock_annotated(g_flag);
    unlock_annotated(g_flag);
  });
}

BENCHMARK(bare)->Name("spin_lock/bare");
BENCHMARK(annotated)->Name("spin_lock/annotated");

}  // namespace

BENCHMARK_MAIN();
