// Walks frozen stacks. The shim recorded the registers when a thread took a lock, and the bytes of the stack later.
// Functions that were on the stack at first may have returned in between. The frames of these functions may have been
// overwritten, even by a chain of frames that looks sound.
#pragma once

#include "symbols/unwinder.hpp"

namespace forksight::symbols {

// Returns the frame of `innermost`, then its callers. If the callers are still on the stack and nothing contradicts
// them, the callers are taken from the stack. Otherwise the frames of functions that have returned are restored from
// the machine code: call by call, from a caller that is still on the stack to the innermost frame. The restored frames
// and all their callers are marked approximate. Frames that cannot be found are left out. `is_cut`: the bytes end
// before the stack does.
Walk walk_frozen(AddressSpace& space, const Registers& innermost, const StackBytes& stack, bool is_cut);

}  // namespace forksight::symbols
