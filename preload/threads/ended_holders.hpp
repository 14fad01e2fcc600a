// Threads that ended while they held locks: no thread can ever release these, neither in the parent nor in a child.
#pragma once

#include "record/slots.hpp"

namespace forksight {

// The thread of `slot`, which the caller has claimed (kReserved), has ended. True if the memory of a lock still names
// the thread as its owner; then the slot has the state kThreadEnded, and a new kThread record is needed.
bool mark_if_ended_with_locks(Slot& slot);

// The same for a slot of this process whose thread may have ended. Called in a fork's prepare handler.
void look_for_ended_holders(Slot& slot);

}  // namespace forksight
