#pragma once

namespace forksight {

// True if `address` is in a MAP_SHARED mapping. Reads /proc/self/maps, which takes tens of microseconds: for rare
// decisions only. Also false if that cannot be read. fork-child-safe.
bool is_in_shared_mapping(const volatile void* address);
// True if it is in a private mapping; false if that cannot be read. For writes that would harm another process.
bool is_in_private_mapping(const volatile void* address);

}  // namespace forksight
