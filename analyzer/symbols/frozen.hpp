// Frozen stacks: the registers were recorded when a lock was taken, the bytes later. Functions that have returned since
// may have left anything where their return addresses were, even a chain of frames that looks sound.
#pragma once

#include "symbols/unwinder.hpp"

namespace forksight::symbols {

// The frame that `innermost` stands for, then its callers. Where they are still on the stack and nothing contradicts
// them, that is all. Else the frames that have returned are put back by the code: from a caller that is still there
// down to the innermost frame, call by call. What is found in this way is marked approximate; what cannot be found is
// left out. `is_cut`: the bytes end before the stack does.
Walk walk_frozen(AddressSpace& space, const Registers& innermost, const StackBytes& stack, bool is_cut);

}  // namespace forksight::symbols
