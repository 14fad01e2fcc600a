// The arguments of a process, from the memory that the kernel prepared when it started.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "image/memory.hpp"

namespace forksight::image {

// `auxiliary`: the auxiliary vector, which lies above the environment's pointers on the first stack, whose memory is
// that from `start` to `end`. Empty if that is not what is found there, or is not complete.
std::vector<std::string> find_arguments(const Memory& memory, std::uint64_t start, std::uint64_t end,
                                        std::span<const std::byte> auxiliary);

}  // namespace forksight::image
