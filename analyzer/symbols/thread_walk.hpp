// Stacks of threads that stand still: nothing on them is out of date, but not every register may be known.
#pragma once

#include "symbols/unwinder.hpp"

namespace forksight::symbols {

// From where the thread stands (kReturnAddress is that very place) to its start. Where rbp is needed and not known, the
// frame's size is read out of the code; what lies behind is approximate, and left out unless it is a chain of calls.
Walk walk_thread(AddressSpace& space, const Registers& innermost, const StackBytes& stack);

}  // namespace forksight::symbols
