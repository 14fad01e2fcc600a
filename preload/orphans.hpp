// Locks that a forked child inherited in a state that nobody is left to change: held by threads that do not exist
// here, or held by the forking thread under a thread id that is not its own any more. Used in the child only, off the
// lock path: an acquisition looks here after it found its lock taken.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"
#include "site.hpp"
#include "slots.hpp"

namespace forksight {

// True in a forked child that inherited such locks.
bool locks_are_watched();

// In the child, before anything else runs: reads the frozen held arrays, settles each entry by the lock's own memory,
// writes the facts. fork-child-safe.
void collect_orphans(Slot* forking);

// What is known to be lost about the lock that an operation found taken.
struct Touch {
  std::uint64_t record;  // ref of the kTouch record, 0: none written
};

// An acquisition is about to block. Writes the finding first; applies --on-orphan.
// `shared`: a reader's, of a lock of the program's own.
Touch touch_lock(const volatile void* lock, trace::LockKind kind, bool timed, const Site& site, bool shared = false);
// The acquisition came back after all.
void end_touch(const Touch& touch, int result);
// An unlock of a lock that the forking thread held was refused.
void touch_refused_unlock(const volatile void* lock, int result, const Site& site);
// The child acquired or released the lock properly: it is no orphan (any more).
// `keep_readers`: of a lock of the program's own, acquired by a reader beside those that are lost.
void forget_orphan(const volatile void* lock, bool keep_readers = false);

}  // namespace forksight
