// --cure=serialise-forks: one thread at a time is inside of fork(), so that no two run each other's handlers at once.
//
// It cannot hang: the wait is bounded, a turn whose thread is gone is free, and a thread that has the turn already (a
// fork in a handler of its fork, or in a signal handler) goes on. async-signal-safe and fork-child-safe.
#pragma once

#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

// Waits for the turn. False: there is none to give back.
bool take_turn(const Slot* self);
// In the parent and in the child: errno is preserved.
void give_turn(const Slot* self);

namespace at_fork {
struct Turns {
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
