// Finds threads that use processor time inside of an operation that cannot end. SpinWatch follows operations that have
// begun and have not ended, according to a trace. If the thread in such an operation is running or ready to run at each
// look, and gets processor time, the thread probably never blocks. This is evidence and no proof: the thread may have
// slept between two looks.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <vector>

namespace forksight::watch {

// A thread inside of an operation on something that the fork of its process broke.
struct OpenTouch {
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  friend auto operator<=>(const OpenTouch&, const OpenTouch&) = default;
};

struct Spin {
  OpenTouch touch;
  std::chrono::steady_clock::time_point since;
};

// True if a thread that got `cpu_ticks` of processor time in `elapsed` counts as busy. A small share of one processor
// is enough, because many spinning threads may compete for the machine.
bool is_busy(std::uint64_t cpu_ticks, std::chrono::steady_clock::duration elapsed, long ticks_per_second);

class SpinWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // Replaces the list of operations that are followed. An operation that was in the old list keeps its history.
  void follow(const std::vector<OpenTouch>& touches);
  void look(Clock::time_point now);
  // The operations whose threads have been busy for at least `age`.
  std::vector<Spin> spinning(Clock::time_point now, Clock::duration age) const;

 private:
  struct History {
    bool runs = false;
    Clock::time_point since;
    std::uint64_t ticks_at_start = 0;
    std::uint64_t ticks = 0;
  };
  std::map<OpenTouch, History> histories_;
};

}  // namespace forksight::watch
