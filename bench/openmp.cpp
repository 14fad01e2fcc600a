// Measures what the shim adds to a parallel region that does nothing, with a team of two threads of GCC's libgomp.
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
