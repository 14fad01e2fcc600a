// Which functions of libc take locks that fork() does not reset in the child.
#pragma once

#include <cstdint>
#include <string_view>

namespace forksight::inspect {

// A set of trace::LibcLock; 0 for functions that take none.
std::uint64_t libc_locks_of(std::string_view function);

}  // namespace forksight::inspect
