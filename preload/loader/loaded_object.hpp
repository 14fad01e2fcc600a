// Which loaded object an address is in, without the loader's lock, and whether it is still the one that was met before.
#pragma once

#include <dlfcn.h>

#include <cstdint>

namespace forksight {

// All zero: in none. glibc 2.35; lock-free.
dl_find_object find_object(std::uint64_t address);

// Tells it from another object that is loaded later at the same place, and even with the same link map: a hash over its
// path, its ELF header, which differs from build to build, and where it is. Of objects that are in use, so they stay
// for now. 0: none.
std::uint64_t identify(const dl_find_object& object);

// Is it one of the shim's own functions or variables?
bool is_in_shim(std::uint64_t address);

}  // namespace forksight
