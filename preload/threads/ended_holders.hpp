// Threads that ended while they held locks: no thread can ever release these locks, neither in the parent nor in a
// child.
#pragma once

#include "record/slots.hpp"

namespace forksight {

// Called when the thread of `slot` has ended, and the caller has claimed the slot (kReserved). Returns true if the
// memory of a lock shows that the thread still holds the lock. In this case the function sets the flag kThreadEnded of
// the slot, and forgets the slot's kThread record. Therefore the kThread record is written again, with the flag, when
// another record next refers to it.
bool mark_if_ended_with_locks(Slot& slot);

// As mark_if_ended_with_locks(), but for a slot that the caller has not claimed. Does nothing if the slot belongs to
// another process, or if the slot's thread has not ended. Called in a fork's prepare handler.
void check_for_ended_holder(Slot& slot);

}  // namespace forksight
