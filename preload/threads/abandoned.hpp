// Threads that ended with locks held: nobody can ever release these, in the parent no more than in a child.
#pragma once

#include "record/slots.hpp"

namespace forksight {

// The thread of `slot`, which the caller has claimed (kReserved), is gone. True if a lock's own memory still names it
// as the owner; then the slot has kThreadEnded, and a new kThread record is due.
bool mark_if_abandoned(Slot& slot);

// The same for a slot of this process that may have ended, in a fork's prepare.
void look_for_abandoned(Slot& slot);

}  // namespace forksight
