#pragma once

namespace forksight {

// Does `address` lie in a MAP_SHARED mapping? Reads /proc/self/maps: tens of microseconds, for rare decisions only.
// False also where that cannot be read. fork-child-safe.
bool is_in_shared_mapping(const volatile void* address);
// The opposite, and false where that cannot be read: for what would do harm to another process.
bool is_in_private_mapping(const volatile void* address);

}  // namespace forksight
