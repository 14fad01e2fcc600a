// Finds the frame of a stack that refers to a lock: a variable or a register of the frame has the address of the lock,
// and the function calls functions of locks. A function that holds a lock usually does both, because it will release
// the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "symbols/address_space.hpp"
#include "symbols/last_calls.hpp"

namespace forksight::symbols {

// The index of the innermost such frame. A frame saves registers of its callers, and these registers count for the
// caller. Bytes below the innermost frame belong to functions that have returned, and do not count.
//
// A variable that a function has not set yet has any value that an earlier function left there. So a function that
// calls no function of locks does not count: it can hold no lock, unless it releases it by a function with another
// name.
std::optional<std::size_t> find_referring_frame(AddressSpace& space, const KnownWalk& known, const StackBytes& stack,
                                                std::uint64_t address);

// True for the readable names of functions that take or release locks: "pthread_mutex_lock", "absl::Mutex::Unlock",
// "Guard::~Guard". A clock and a block are no lock.
bool is_name_of_lock_function(std::string name);

}  // namespace forksight::symbols
