// Walks the stacks of threads that stand still. Nothing on such a stack is out of date, but some registers may be
// unknown.
#pragma once

#include "symbols/unwinder.hpp"

namespace forksight::symbols {

// Walks from the place where the thread stands to its start. kReturnAddress is the exact pc of that place. If rbp is
// needed and not known, the frame's size is read out of the code. The callers that are found in this way are
// approximate. They are left out unless each return address is behind a call.
Walk walk_thread(AddressSpace& space, const Registers& innermost, const StackBytes& stack);

}  // namespace forksight::symbols
