// What the shim adds to a parallel region that does nothing: GCC's libgomp, a team of two.
#include <benchmark/benchmark.h>

namespace {

void empty_region(benchmark::State& state) {
  for (auto _ : state) {
#pragma omp parallel num_threads(2)
    benchmark::ClobberMemory();
  }
}

BENCHMARK(empty_region)->Name("openmp/empty_parallel")->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
