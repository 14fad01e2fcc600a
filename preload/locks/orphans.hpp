// Locks that a forked child inherited, and that no thread of the child can unlock: threads that do not exist in the
// child hold them, or the forking thread holds them under a thread id that it no longer has. This code runs only in the
// child, and not on the fast path. An acquisition calls this code only if the lock is taken.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"
#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

// True in a forked child that inherited such locks.
inline bool locks_are_watched() { return (g_slow_locks & kSlowOrphans) != 0; }

// The record of an operation on an object that the fork broke.
struct Touch {
  std::uint64_t record;  // ref of the kTouch record; 0: none was written
};

// Called before an acquisition that found its lock taken. If the lock is an orphan, writes a kTouch record, and applies
// --on-orphan. `shared`: a reader acquires an annotated lock.
Touch touch_lock(const volatile void* lock, trace::LockKind kind, bool timed, const Site& site, bool shared = false);
// Records the result of the operation. Called when the operation has returned.
void end_touch(const Touch& touch, int result);
// Called when an unlock was refused. Records the refusal if the forking thread held the lock at the fork.
void touch_refused_unlock(const volatile void* lock, int result, const Site& site);
// Removes the lock from the orphans. `keep_readers`: lost readers of an annotated lock stay in the list, because the
// thread that acquired the lock is a reader, too.
void forget_orphan(const volatile void* lock, trace::LockKind kind, bool keep_readers = false);
// Called when the child has acquired or released the lock with success, so that the lock is no longer an orphan. An
// operation that succeeded only because of --cure=self-held is recorded.
void forget_acquired(const volatile void* lock, trace::LockKind kind, const Site& site);
void forget_released(const volatile void* lock, const Site& site);
// As forget_released(), but only for a lock that was given to the child (--cure=self-held).
void forget_given_to_child(const volatile void* lock, const Site& site);

// Sends SIGABRT to the calling thread, as abort() does. A handler of the program may run. If the process survives the
// signal, it is ended with exit status 128 + SIGABRT.
[[noreturn]] void end_process();

namespace at_fork {
struct Orphans {
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
