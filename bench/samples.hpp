// Computes the figure of one round of a benchmark. A mean would depend mostly on other work on the machine: one
// operation that is preempted for 4 ms weighs as much as eighty forks. So each operation is timed separately. If
// operations take only nanoseconds, each batch of them is timed. The figure is a quantile of these times, in
// nanoseconds for an operation. The figure is reported as a counter.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace forksight::bench {

using Clock = std::chrono::steady_clock;

// The quantile for operations that a disturbance can only make longer. The minimum is not used, because it depends on
// luck.
constexpr double kLowDecile = 0.1;
// The quantile for two threads that use the same lock. In this case, a disturbance can also make an operation shorter:
// while one thread waits for a processor, the other one finds the lock free.
constexpr double kMedian = 0.5;

class Samples {
 public:
  Samples() { nanoseconds_.reserve(std::size_t{1} << 14U); }

  void add(Clock::duration took, int operations = 1) {
    nanoseconds_.push_back(std::chrono::duration<double, std::nano>(took).count() / operations);
  }
  [[nodiscard]] benchmark::Counter quantile(double part) {
    if (nanoseconds_.empty()) return 0;
    const auto rank = static_cast<std::ptrdiff_t>(part * static_cast<double>(nanoseconds_.size() - 1));
    std::nth_element(nanoseconds_.begin(), nanoseconds_.begin() + rank, nanoseconds_.end());
    // Each thread of a benchmark has samples of its own.
    return {nanoseconds_[static_cast<std::size_t>(rank)], benchmark::Counter::kAvgThreads};
  }

 private:
  std::vector<double> nanoseconds_;
};

// Runs `operation` repeatedly, and times batches of `kBatch` operations. Reports the quantile `part` of their times.
template <int kBatch, typename Operation>
void sample(benchmark::State& state, double part, Operation operation) {
  Samples samples;
  while (state.KeepRunningBatch(kBatch)) {
    const auto begin = Clock::now();
    for (int i = 0; i < kBatch; ++i) operation();
    samples.add(Clock::now() - begin, kBatch);
  }
  state.counters["figure"] = samples.quantile(part);
}

}  // namespace forksight::bench
