// Measures how often and how long each thread has held each lock. The child of a fork has a frozen copy of these
// numbers. Suppose that other threads of the parent took a lock now and then, and that the lock was free at the fork.
// Then the child records when it takes this lock: if the lock had not been free, the child would hang.
#pragma once

#include <cstddef>

#include "record/slots.hpp"

namespace forksight {

std::size_t hold_times_bytes();
void start_hold_times(void* memory);  // a mapping of hold_times_bytes(), all zero

// Begins to measure times. Called when the process gets its second thread, because a fork can orphan a lock only from
// then on. True at the first call in a process.
bool begin_time_with_threads();
void begin_hold(Slot& slot, const HeldLock* entry);
void end_hold(const Slot& slot, const HeldLock* entry);
// Called when a thread releases the lock of `entry`, but still holds locks that it took later. Lock G is a gate of lock
// L if threads hold L only while they hold G. From now on, the released lock is not a gate of the later locks.
void open_gate(const Slot& slot, const HeldLock* entry);

// Called in a forked child, before begin_life_in_child(). Stores how long the parent has measured, and which locks the
// forking thread held. `self`: the slot of the forking thread. The slot still has the number by which lives.hpp knows
// this thread of the parent.
void freeze_hold_times(const Slot& self);
// Called when the thread of `slot` has taken the lock of `entry`, by a call that would have waited for the lock.
// `entry` is the last entry in the slot's array of held locks. In a child, records the acquisition if another thread of
// the parent could have held the lock at the fork. In other processes, does nothing.
void touch_racy(Slot& slot, const HeldLock* entry);

}  // namespace forksight
