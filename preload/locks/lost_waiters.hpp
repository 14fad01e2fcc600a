// Lost waiters: a forked child inherits condition variables and barriers that count waiting threads of its parent. The
// child does not have these threads, so they never leave. A call that waits until these threads leave never returns.
// Such calls are pthread_cond_destroy, sometimes signal and broadcast, and the functions of barriers.
//   At the fork only the addresses of the objects are noted. The memory of an object is read at the child's first
//   operation on the object. Then the object certainly is still a condition variable or barrier. A child that only
//   calls exec pays nothing.
#pragma once

#include "forksight/trace/format.hpp"
#include "guest/site.hpp"
#include "locks/orphans.hpp"
#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

// True in a child that may have inherited such objects, and before the shim is started. The hooks read this flag first.
extern bool g_sync_is_watched;

// Called when the shim is started: sets g_sync_is_watched to false.
void begin_watching_sync();

// Called before `operation` is done on the object. At the first operation on a condition variable with lost waiters,
// initialises it again if the cure is on. Records the operation in three cases: it will block, it would have blocked
// without the cure, or its signal goes to a lost waiter. Call end_touch() afterwards.
Touch touch_condition(const volatile void* condition, trace::SyncOperation operation, const Site& site);
Touch touch_barrier(const volatile void* barrier, trace::SyncOperation operation, const Site& site);

namespace at_fork {
struct LostWaiters {
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
