// Errors with their sentence: what, with which value, and what to do.
#pragma once

#include <cstdarg>

#include "forksight/ipc/result.hpp"

namespace forksight::ipc::detail {

__attribute__((format(printf, 2, 3))) error failure(errc code, const char* format, ...);
// Of a system call: the text ends in errno's, and EMFILE, ENFILE, ETOOMANYREFS are fd_limit, ENOMEM and ENOSPC
// no_space.
__attribute__((format(printf, 2, 3))) error failed_call(int sys_errno, const char* format, ...);
// How many descriptors are open, of how many: for fd_limit's text.
std::string descriptor_use();

}  // namespace forksight::ipc::detail
