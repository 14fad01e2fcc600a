// The guard variable of a static that is initialised at its first use. The guard variable belongs to the C++ ABI, not
// to glibc.
#pragma once

#include <cstdint>

namespace forksight::abi {

// In the Itanium C++ ABI the guard's first byte says that the static is initialised. Both libstdc++ and libc++abi mark
// a running initialisation in the second byte.
constexpr bool is_initialising(std::uint64_t guard) { return (guard & 0xff) == 0 && (guard & 0xff00) != 0; }

}  // namespace forksight::abi
