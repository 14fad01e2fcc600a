// Walks the stack of a thread that no longer exists and whose registers are not known. The walk starts at the thread's
// first function and goes inwards. The last call of each function has left its return address below the function's
// frame, because every later call would have put its own there. So the frames form the chain of last calls. An inner
// part of the chain may have returned: the function that made the last call of the chain, or one of its callers, may
// have gone on since. Older data deeper in the stack belongs to no chain, because the sizes of the frames or the code
// of the calls contradict it.
#pragma once

#include <optional>
#include <vector>

#include "symbols/unwinder.hpp"

namespace forksight::symbols {

struct KnownWalk {
  Walk walk;
  std::vector<Registers> registers;  // of each frame, as far as the stack has them
};

// `stack`: the bytes up to, or beyond, the frame of the thread's first function. The chain ends where the next call is
// not known, or where several calls would fit. nullopt if not even the first function is found.
std::optional<KnownWalk> find_last_calls(AddressSpace& space, const StackBytes& stack);

}  // namespace forksight::symbols
