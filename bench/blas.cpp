// Measures the time that the shim adds to a matrix product of OpenBLAS. The threads of OpenBLAS use mutexes and
// condition variables to wait for each other.
#include <benchmark/benchmark.h>

#include <vector>

#include "samples.hpp"

extern "C" void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*,
                       const int*, const double*, const int*, const double*, double*, const int*);

namespace {

void dgemm(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  const double one = 1;
  const double zero = 0;
  const std::size_t size = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  const std::vector<double> a(size, 1.5);
  const std::vector<double> b(size, 0.5);
  std::vector<double> c(size);
  forksight::bench::sample<1>(state, forksight::bench::kLowDecile, [&] {
    dgemm_("N", "N", &n, &n, &n, &one, a.data(), &n, b.data(), &n, &zero, c.data(), &n);
    benchmark::DoNotOptimize(c.data());
  });
}

BENCHMARK(dgemm)->Name("openblas/dgemm")->Arg(64)->Arg(512)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
