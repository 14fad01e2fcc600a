// Names the place of an object that has no symbol: the heap, a thread's stack, a mapped file.
#pragma once

#include <cstdint>
#include <string>

#include "image/image.hpp"

namespace forksight::inspect {

// Returns a text such as "heap", "stack of thread 4240", or "/dev/shm/queue+0x40" (for shared memory and files: with
// the offset in the file). Returns "" if the address is in no mapping, or in a mapping of another kind.
std::string describe_place(const image::Image& image, std::uint64_t address);

}  // namespace forksight::inspect
