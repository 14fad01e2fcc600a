// Frozen stacks: the registers were recorded when a lock was taken, the bytes later. Functions that have returned since
// may have left anything where their return addresses were.
#pragma once

#include "symbols/unwinder.hpp"

namespace forksight::symbols {

// The frame that `innermost` stands for, then what can be found of its callers. Frames found by scanning are marked
// approximate; what cannot be found is left out. `is_cut`: the bytes end before the stack does.
Walk walk_frozen(AddressSpace& space, const Registers& innermost, const StackBytes& stack, bool is_cut);

}  // namespace forksight::symbols
