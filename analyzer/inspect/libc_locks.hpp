// Which of libc's functions take locks that fork() leaves as they are in the child.
#pragma once

#include <cstdint>
#include <string_view>

namespace forksight::inspect {

// Set of trace::LibcLock; 0 for functions that take none.
std::uint64_t libc_locks_of(std::string_view function);

}  // namespace forksight::inspect
