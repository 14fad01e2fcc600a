// Timers that send signals. A fork leaves them to the parent: a child that waits for such a signal, and for nothing
// else, waits for ever unless somebody sends it one. What is armed is asked of the kernel at the fork, and again where
// a child waits: nothing is noted when a timer is set.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"

namespace forksight {

// The signals of the timers that this process lost by its fork; 0 in all others.
extern std::uint64_t g_lost_timers;

// The calling thread is about to wait for one of `signals` (bit 0 is signal 1). Returns the record of that; 0 if others
// could end the wait, or a timer of this process sends one of them. Preserve errno, both.
std::uint64_t begin_timer_wait(std::uint64_t signals, const Site& site);
// `came`: by a signal, so somebody sends them.
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
