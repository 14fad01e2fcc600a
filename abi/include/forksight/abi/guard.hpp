// The guard variable of a static that is initialised at its first use. Of the C++ ABI, not of glibc.
#pragma once

#include <cstdint>

namespace forksight::abi {

// In the Itanium C++ ABI its first byte says that the static is initialised; libstdc++ and libc++abi both keep what is
// under way in the second.
constexpr bool is_initialising(std::uint64_t guard) { return (guard & 0xff) == 0 && (guard & 0xff00) != 0; }

}  // namespace forksight::abi
