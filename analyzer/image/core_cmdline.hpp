// Finds the arguments of a process in the stack that the kernel prepared when the program started.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "image/memory.hpp"

namespace forksight::image {

// Returns the arguments of the program. The main thread's stack lies from `start` to `end`. `auxiliary` is the
// auxiliary vector, which lies on that stack, above the pointers to the environment. Returns nothing if the vector is
// not found there, or if the arguments are not complete.
std::vector<std::string> find_arguments(const Memory& memory, std::uint64_t start, std::uint64_t end,
                                        std::span<const std::byte> auxiliary);

}  // namespace forksight::image
