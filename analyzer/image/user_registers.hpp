// The registers of a thread, as ptrace and cores show them: struct user_regs_struct of <sys/user.h>.
#pragma once

#include <sys/user.h>

#include "image/image.hpp"

namespace forksight::image {

symbols::Registers by_dwarf_number(const user_regs_struct& registers);

// True if the thread was in a system call that the kernel will restart, or that the stop has cut short. In both cases
// the kernel stores -EINTR, or an error of its own (-512 to -516), as the result of the call.
bool is_in_call(const user_regs_struct& registers);
proc::Syscall call_of(const user_regs_struct& registers);

}  // namespace forksight::image
