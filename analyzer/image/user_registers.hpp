// What ptrace and cores show of a thread: struct user_regs_struct of <sys/user.h>.
#pragma once

#include <sys/user.h>

#include "image/image.hpp"

namespace forksight::image {

symbols::Registers by_dwarf_number(const user_regs_struct& registers);

// True if the thread was taken out of a system call that it will return to, or that the stop has cut short. The kernel
// then puts one of its own errors (-512 and below) or -EINTR in the place of the result.
bool is_in_call(const user_regs_struct& registers);
proc::Syscall call_of(const user_regs_struct& registers);

}  // namespace forksight::image
