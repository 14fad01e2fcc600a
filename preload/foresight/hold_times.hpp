// For how long each thread has had each lock, and how often. The child of a fork has a frozen copy: when it takes a
// lock that other threads of its parent had at other times, it says so.
#pragma once

#include <cstddef>

#include "record/slots.hpp"

namespace forksight {

std::size_t hold_times_bytes();
void start_hold_times(void* memory);  // of so many bytes, all 0

// There are two threads from now on: the time in which a fork can lose a lock. True at the first call.
bool begin_window();
void begin_hold(Slot& slot, const HeldLock* entry);
void end_hold(const Slot& slot, const HeldLock* entry);
// The lock of `entry` is given back while those above it are held: it is no gate of theirs.
void open_gate(const Slot& slot, const HeldLock* entry);

// In the child: the fork is over; `self` still has its life in the parent.
void freeze_hold_times(const Slot& self);
// The calling thread of the child has taken the lock of its innermost entry, by a call that would have waited for it.
void touch_racy(Slot& slot, const HeldLock* entry);

}  // namespace forksight
