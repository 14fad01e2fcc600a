// Tells which functions of libc take locks that fork() does not reset in the child.
#pragma once

#include <cstdint>
#include <string_view>

namespace forksight::inspect {

// Returns a set of trace::LibcLock: the locks that the function takes. 0: it takes none of them.
std::uint64_t libc_locks_of(std::string_view function);

}  // namespace forksight::inspect
