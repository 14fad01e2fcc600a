#pragma once

namespace forksight {

// True if `address` is in a MAP_SHARED mapping; false if /proc/thread-self/maps cannot be read. Reading that file takes
// tens of microseconds, so these functions are only for rare decisions. fork-child-safe.
bool is_in_shared_mapping(const volatile void* address);
// True if `address` is in a private mapping; false if the file cannot be read. For use before a write that would harm
// another process if the memory were shared.
bool is_in_private_mapping(const volatile void* address);

}  // namespace forksight
