// Measures the time that the shim adds to an empty parallel region. The team has two threads of GCC's libgomp.
#include <benchmark/benchmark.h>

#include "samples.hpp"

namespace {

void empty_region(benchmark::State& state) {
  forksight::bench::sample<1>(state, forksight::bench::kLowDecile, [] {
#pragma omp parallel num_threads(2)
    benchmark::ClobberMemory();
  });
}

BENCHMARK(empty_region)->Name("openmp/empty_parallel")->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
