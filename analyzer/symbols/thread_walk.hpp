// Walks the stacks of threads that do not run: stopped threads, and the threads of a core. Nothing on such a stack is
// out of date, but the values of some registers may be unknown.
#pragma once

#include "symbols/unwinder.hpp"

namespace forksight::symbols {

// Walks from the place where the thread is now to the start of the thread. kReturnAddress of `innermost` is the exact
// pc of the thread. If rbp is needed and not known, the size of the frame is taken from the machine code. The callers
// that are found in this way are approximate. Such a caller is left out unless its return address is right behind a
// call instruction.
Walk walk_thread(AddressSpace& space, const Registers& innermost, const StackBytes& stack);

}  // namespace forksight::symbols
