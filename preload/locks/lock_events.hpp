// Events: locks were taken and released. These events are sent only if orders or times of locks are recorded
// (kSlowForesight in g_slow_locks). observers.def lists the receivers.
#pragma once

#include "record/slots.hpp"

namespace forksight {

// The calling thread acquired the lock and has pushed it onto its held array (held.hpp). `waits`: true if the call
// waits until it has the lock; false for a trylock and for a call with a deadline.
void lock_acquired(Slot* slot, const volatile void* lock, trace::LockKind kind, bool waits);
// The thread is about to release the lock, or to wait for a condition. The lock is still in the thread's held array.
void lock_released(Slot* slot, const volatile void* lock);
// An entry of the held array is about to move down to `to`.
void held_moved(Slot* slot, HeldLock* to, const HeldLock* from);

inline bool locks_are_observed() { return FORKSIGHT_UNLIKELY((g_slow_locks & kSlowForesight) != 0); }

}  // namespace forksight
