// Names the place of an object that has no symbol: the heap, a thread's stack, a mapped file.
#pragma once

#include <cstdint>
#include <string>

#include "image/image.hpp"

namespace forksight::inspect {

// "heap", "stack of thread 4240", "/dev/shm/queue+0x40" (shared memory and files: offset in the file); "" if it is in
// no mapping, or in one that shows nothing.
std::string describe_place(const image::Image& image, std::uint64_t address);

}  // namespace forksight::inspect
