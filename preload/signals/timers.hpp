// Timers that send signals. They stay with the parent at a fork: a child that waits only for such a signal waits for
// ever, unless a process sends it one. The kernel is asked which timers are armed at the fork, and again when a child
// waits: nothing is noted when a timer is set.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"

namespace forksight {

// The signals of the timers that this process lost by its fork; 0 in all other processes.
extern std::uint64_t g_lost_timers;

// The calling thread is about to wait for one of `signals` (bit 0 is signal 1). Returns the record of that; 0 if
// something else could end the wait, or if a timer of this process sends one of the signals. Both functions preserve
// errno.
std::uint64_t begin_timer_wait(std::uint64_t signals, const Site& site);
// `came`: a signal ended the wait, so some process sends them.
void end_timer_wait(std::uint64_t touch, std::uint64_t signals, bool came);

namespace at_fork {
struct Timers {
  static bool tells();
  static void records(const Fork& fork);
  static void continues(const Fork& fork);
  static void starts_any(std::uint64_t record);
};
}  // namespace at_fork

}  // namespace forksight
