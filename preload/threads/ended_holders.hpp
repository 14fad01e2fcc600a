// Threads that ended while they held locks: no thread can ever release these, neither in the parent nor in a child.
#pragma once

#include "record/slots.hpp"

namespace forksight {

// The thread of `slot`, which the caller has claimed (kReserved), has ended. True if the memory of a lock shows that
// the thread still holds it. Then the slot gets the flag kThreadEnded, and its kThread record is written again.
bool mark_if_ended_with_locks(Slot& slot);

// The same for a slot of this process whose thread may have ended. Called in a fork's prepare handler.
void look_for_ended_holders(Slot& slot);

}  // namespace forksight
