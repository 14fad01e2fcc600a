// The part of the trace format about timers, which a forked child does not have, and about signals that are blocked in
// a forked child from its start. Included by format.hpp.
#pragma once

#include <cstdint>

namespace forksight::trace {

enum class TimerKind : std::uint32_t {
  kReal = 1,   // alarm(), ualarm(), setitimer(ITIMER_REAL)
  kPosix = 2,  // timer_create()
};

// A timer that was armed when its process forked. Written by the forking thread after its kFork.
struct TimerRecord {
  std::uint64_t fork;  // ref to kFork
  TimerKind kind;
  std::int32_t number;  // number of the signal that the timer sends
  std::uint64_t remaining_ns;
  std::uint64_t interval_ns;  // 0: the timer expires only once
};
static_assert(sizeof(TimerRecord) == 32);

// The signals that the forking thread blocks. The child starts with the same signals blocked. The forking thread writes
// this record after its kFork, but only if it blocks signals.
struct BlockedSignalsRecord {
  std::uint64_t fork;     // ref to kFork
  std::uint64_t signals;  // bit 0 is signal 1
};
static_assert(sizeof(BlockedSignalsRecord) == 16);

}  // namespace forksight::trace
