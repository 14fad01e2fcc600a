// Threads that use their processor inside of an operation that cannot end. This follows operations that a trace calls
// open (begun, not ended). A thread that was on the run queue at each look, and got processor time, seems never to have
// blocked. That is evidence, not proof: it may have slept between two looks.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <vector>

namespace forksight::watch {

// A thread inside of an operation on something that its fork broke.
struct OpenTouch {
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  friend auto operator<=>(const OpenTouch&, const OpenTouch&) = default;
};

struct Spin {
  OpenTouch touch;
  std::chrono::steady_clock::time_point since;
};

// True if a thread that got `cpu_ticks` of processor time in `elapsed` is busy. Many spinning threads may share the
// machine.
bool is_busy(std::uint64_t cpu_ticks, std::chrono::steady_clock::duration elapsed, long ticks_per_second);

class SpinWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // Replaces the operations that are followed. Those that stay open keep their history.
  void follow(const std::vector<OpenTouch>& touches);
  void look(Clock::time_point now);
  // The operations that have been open and busy for `age`.
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
