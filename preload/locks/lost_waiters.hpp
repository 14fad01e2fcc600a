// Condition variables and barriers that a forked child inherited with threads of its parent still counted in: waiters
// that do not exist here. They never leave, so whoever waits for them to leave hangs: pthread_cond_destroy, sometimes
// signal and broadcast, the barrier's own functions.
//
// At the fork only their addresses are kept. Memory is looked at when the child touches one: then it is what the
// program says it is, and a child that only execs pays nothing.
#pragma once

#include "forksight/trace/format.hpp"
#include "guest/site.hpp"
#include "locks/orphans.hpp"
#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

// True in a process that may have inherited such objects, and before the shim is up. What the hooks look at first.
extern bool g_sync_is_watched;

// The shim is up.
void begin_watching_sync();

// `operation` is about to be done on the object. Writes what is known if it may block for lost waiters' sake; re-makes
// a condition variable if the cure is on. end_touch() after it.
Touch touch_condition(const volatile void* condition, trace::SyncOperation operation, const Site& site);
Touch touch_barrier(const volatile void* barrier, trace::SyncOperation operation, const Site& site);

namespace at_fork {
struct LostWaiters {
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
