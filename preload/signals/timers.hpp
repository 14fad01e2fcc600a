// Timers that send signals. A forked child does not have the timers of its parent. A child may wait only for signals of
// these timers. If no process sends such a signal to the child, the child waits for ever. At a fork, and again when a
// child waits, the shim asks the kernel which timers are armed. The shim does nothing when the program sets a timer.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"

namespace forksight {

// The signals of the timers that this process lost by its fork, if that fork was recorded; else 0. A signal that has
// ended a wait is removed. A child whose fork the shim did not see has the value of its parent. begin_timer_wait()
// recognises such a child by its pid.
extern std::uint64_t g_lost_timers;

// Called before the calling thread waits for one of `signals` (bit 0 is signal 1). Writes and returns the record of the
// wait. Writes no record and returns 0 if the set includes signals that no lost timer sends, if a timer of this process
// sends one of the signals, or if this process has recorded the highest allowed number of waits. Preserves errno.
std::uint64_t begin_timer_wait(std::uint64_t signals, const Site& site);
// `got_signal`: a signal ended the wait. So some process sends these signals, and later waits for them are not
// recorded. Preserves errno.
void end_timer_wait(std::uint64_t touch, std::uint64_t signals, bool got_signal);

namespace at_fork {
struct Timers {
  static bool tells();
  static void records(const Fork& fork);
  static void continues(const Fork& fork);
  static void starts_any(std::uint64_t record);
};
}  // namespace at_fork

}  // namespace forksight
