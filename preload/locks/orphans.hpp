// Locks that a forked child inherited in a state that no thread can change: held by threads that do not exist in the
// child, or held by the forking thread under a thread id that it no longer has. Used only in the child and only off the
// lock path: an acquisition looks here after it found its lock taken.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"
#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

// True in a forked child that inherited such locks.
inline bool locks_are_watched() { return (g_slow_locks & kSlowOrphans) != 0; }

// What is known to be lost about a lock that an operation found taken.
struct Touch {
  std::uint64_t record;  // ref of the kTouch record; 0: none was written
};

// An acquisition is about to block. Writes the record first, and applies --on-orphan. `shared`: by a reader, for an
// annotated lock.
Touch touch_lock(const volatile void* lock, trace::LockKind kind, bool timed, const Site& site, bool shared = false);
// The acquisition came back after all.
void end_touch(const Touch& touch, int result);
// An unlock of a lock that the forking thread held was refused.
void touch_refused_unlock(const volatile void* lock, int result, const Site& site);
// The lock is no longer an orphan. `keep_readers`: a reader acquired an annotated lock beside the lost readers.
void forget_orphan(const volatile void* lock, trace::LockKind kind, bool keep_readers = false);
// The child acquired or released the lock properly: removes it, too. Records this if it is due to --cure=self-held.
void forget_acquired(const volatile void* lock, trace::LockKind kind, const Site& site);
void forget_released(const volatile void* lock, const Site& site);
// The same for a release, only for a cured lock.
void forget_given(const volatile void* lock, const Site& site);

// Ends the process as abort() would, but without handlers.
[[noreturn]] void end_process();

namespace at_fork {
struct Orphans {
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
