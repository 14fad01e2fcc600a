// Frozen stacks: the registers were recorded when a lock was taken, the bytes later. Functions that have returned since
// may have left anything where their return addresses were, even a chain of frames that looks sound.
#pragma once

#include "symbols/unwinder.hpp"

namespace forksight::symbols {

// The frame of `innermost`, then its callers. If they are still on the stack and nothing contradicts them, that is all.
// Otherwise the code is used to restore the frames that have returned, call by call, from a caller that is still there
// to the innermost frame. Restored frames are marked approximate; frames that cannot be found are left out. `is_cut`:
// the bytes end before the stack does.
Walk walk_frozen(AddressSpace& space, const Registers& innermost, const StackBytes& stack, bool is_cut);

}  // namespace forksight::symbols
