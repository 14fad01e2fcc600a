// --cure=serialise-forks: only one thread at a time is inside of fork(), so that two forks do not wait for each other
// in their handlers. The right to be inside of fork() is called the turn.
//   This cure cannot cause a hang, because the wait for the turn is bounded. If the thread with the turn no longer
//   exists, the turn is free. A thread that has the turn already does not wait. Such a thread forks in a handler of its
//   own fork, or in a signal handler.
//   async-signal-safe and fork-child-safe.
#pragma once

#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

// Waits for the turn. False: this call has not taken the turn, so the caller must not give it back. Either the wait was
// too long, or the thread has the turn already, or the cure is off.
bool take_turn(const Slot* self);
// Called in the parent and in the child. Preserves errno.
void release_turn(const Slot* self);

namespace at_fork {
struct Turns {
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
