// Where an object is that has no symbol: the heap, a thread's stack, a file that is mapped.
#pragma once

#include <cstdint>
#include <string>

#include "image/image.hpp"

namespace forksight::inspect {

// "heap", "stack of thread 4240", "/dev/shm/queue+0x40" (shared memory and files: offset in the file); "" if it is in
// no mapping, or in one of which nothing can be said.
std::string describe_place(const image::Image& image, std::uint64_t address);

}  // namespace forksight::inspect
