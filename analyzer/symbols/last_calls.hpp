// Walks the stack of a thread that no longer exists and whose registers are not known. The walk starts at the thread's
// first function and goes inwards, from each function to the function that it called last. The return address of the
// last call is right below the frame of the calling function, because each call overwrites the return address of the
// call before. So the walk follows the chain of last calls. The innermost calls of the chain may have returned, and the
// functions that made them may have gone on since. Return addresses of older calls, deeper in the stack, do not become
// part of the chain, because the sizes of the frames or the code of the calls contradict them.
#pragma once

#include <optional>
#include <vector>

#include "symbols/unwinder.hpp"

namespace forksight::symbols {

struct KnownWalk {
  Walk walk;
  std::vector<Registers> registers;  // the registers of each frame, as far as the stack has them
};

// Returns the frames of the chain. `stack` has the bytes up to, or beyond, the frame of the thread's first function.
// The chain ends where the next call is not known, or where several calls would fit. Returns nullopt if not even the
// first function is found.
std::optional<KnownWalk> find_last_calls(AddressSpace& space, const StackBytes& stack);

}  // namespace forksight::symbols
