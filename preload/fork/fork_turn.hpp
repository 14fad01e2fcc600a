// --cure=serialise-forks: only one thread at a time is inside of fork(), so that no two threads run each other's
// handlers at the same time.
//   It cannot hang: the wait is bounded, and the turn of a thread that no longer exists is free. A thread that has the
//   turn already does not wait: it forks in a handler of its own fork, or in a signal handler. async-signal-safe and
//   fork-child-safe.
#pragma once

#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

// Waits for the turn. False: the thread does not have it and must not give it back.
bool take_turn(const Slot* self);
// Called in the parent and in the child. Preserves errno.
void give_turn_back(const Slot* self);

namespace at_fork {
struct Turns {
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
