// Threads that burn their processor inside of an operation that cannot end. What a trace calls open (begun, not ended)
// is followed here: a thread that was on the run queue at each look, and got processor time, has not blocked once.
// That is evidence, not proof: between two looks it may have slept.
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

// Is a thread that got `cpu_ticks` of processor time in `elapsed` busy. The machine may be shared by many spinners.
bool is_busy(std::uint64_t cpu_ticks, std::chrono::steady_clock::duration elapsed, long ticks_per_second);

class SpinWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // Replaces what is followed; what stays open keeps its history.
  void follow(const std::vector<OpenTouch>& touches);
  void look(Clock::time_point now);
  // Those that have been at it for `age`.
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
