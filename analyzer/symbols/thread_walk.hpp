// Walks the stacks of threads that do not run: stopped threads, and those of a core. Nothing on such a stack is out of
// date, but some registers may be unknown.
#pragma once

#include "symbols/unwinder.hpp"

namespace forksight::symbols {

// Walks from the place where the thread is now to the start of the thread. kReturnAddress is the exact pc of the first
// place. If rbp is needed and not known, the frame's size is read out of the code. The callers that are found in this
// way are approximate. They are left out unless each return address is right behind a call instruction.
Walk walk_thread(AddressSpace& space, const Registers& innermost, const StackBytes& stack);

}  // namespace forksight::symbols
