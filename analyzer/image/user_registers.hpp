// The registers of a thread, as ptrace and cores show them: struct user_regs_struct of <sys/user.h>.
#pragma once

#include <sys/user.h>

#include "image/image.hpp"

namespace forksight::image {

symbols::Registers by_dwarf_number(const user_regs_struct& registers);

// True if the thread was in a system call, which the kernel will restart or which the stop has cut short. The kernel
// then stores as the call's result -EINTR, or an error of its own (-512 to -516).
bool is_in_call(const user_regs_struct& registers);
proc::Syscall call_of(const user_regs_struct& registers);

}  // namespace forksight::image
