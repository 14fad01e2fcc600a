// Finds the frame of a stack that has a given address as the value of a variable or of a register. A function that uses
// an object usually keeps the object's address there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "symbols/address_space.hpp"
#include "symbols/last_calls.hpp"

namespace forksight::symbols {

// The index of the innermost such frame. A frame saves registers of its callers, and these registers count for the
// caller. Bytes below the innermost frame belong to functions that have returned, and do not count.
std::optional<std::size_t> find_referring_frame(AddressSpace& space, const KnownWalk& known, const StackBytes& stack,
                                                std::uint64_t address);

}  // namespace forksight::symbols
