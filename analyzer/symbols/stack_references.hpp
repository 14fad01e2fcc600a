// Finds the frame of a stack that refers to a lock: a variable or a register of the frame contains the address of the
// lock, and the function calls lock functions, which take or release locks. A function that holds a lock usually refers
// to the lock and calls a lock function, because the function will release the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "symbols/address_space.hpp"
#include "symbols/last_calls.hpp"

namespace forksight::symbols {

// Returns the index of the innermost frame that refers to the lock at `address`. A register that a frame has saved for
// its caller counts for the caller. Bytes below the innermost frame belong to functions that have returned, and do not
// count.
//
// A variable that a function has not set yet contains what an earlier function left there, for example the address of
// the lock. So a frame does not count if its function calls no lock function. Such a function holds no lock, unless it
// releases the lock by a function whose name does not mention a lock.
std::optional<std::size_t> find_referring_frame(AddressSpace& space, const KnownWalk& known, const StackBytes& stack,
                                                std::uint64_t address);

// True for the readable names of functions that take or release locks: "pthread_mutex_lock", "absl::Mutex::Unlock",
// "Guard::~Guard". "lock" as a part of "clock" or "block" does not count.
bool mentions_lock(std::string name);
// True for the readable names of functions that take a lock, and that may wait for it: "pthread_mutex_lock".
bool mentions_taking_lock(const std::string& name);

}  // namespace forksight::symbols
