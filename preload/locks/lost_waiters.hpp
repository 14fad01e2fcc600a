// Condition variables and barriers that a forked child inherited while they count threads of its parent: waiters that
// do not exist in the child. They never leave, so calls that wait for them to leave hang: pthread_cond_destroy,
// sometimes signal and broadcast, and the functions of barriers.
//   At the fork only their addresses are noted. Their memory is read when the child touches one: then the program
//   itself uses it as such an object, and a child that only execs pays nothing.
#pragma once

#include "forksight/trace/format.hpp"
#include "guest/site.hpp"
#include "locks/orphans.hpp"
#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

// True in a process that may have inherited such objects, and before the shim is started. The hooks look at it first.
extern bool g_sync_is_watched;

// Called when the shim is started.
void begin_watching_sync();

// Called before `operation` is done on the object. If the operation may block because of lost waiters, records what is
// known; re-makes a condition variable if the cure is on. Call end_touch() afterwards.
Touch touch_condition(const volatile void* condition, trace::SyncOperation operation, const Site& site);
Touch touch_barrier(const volatile void* barrier, trace::SyncOperation operation, const Site& site);

namespace at_fork {
struct LostWaiters {
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
