// Makes errors. The text of an error says what failed, with which value, and what to do.
#pragma once

#include <cstdarg>

#include "forksight/ipc/result.hpp"

namespace forksight::ipc::detail {

__attribute__((format(printf, 2, 3))) error failure(errc code, const char* format, ...);
// For a failed system call. The text ends with the text of errno. EMFILE, ENFILE and ETOOMANYREFS become fd_limit.
// ENOMEM and ENOSPC become no_space.
__attribute__((format(printf, 2, 3))) error failed_call(int sys_errno, const char* format, ...);
// How many descriptors are open, and how many are allowed. For the text of fd_limit.
std::string descriptor_use();

}  // namespace forksight::ipc::detail
