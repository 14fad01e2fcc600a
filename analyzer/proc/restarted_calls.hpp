// Tells whether a signal handler disturbs a system call.
#pragma once

#include <cstdint>

#include "proc/proc_text.hpp"

namespace forksight::proc {

// True if the kernel makes the call again after a signal handler with SA_RESTART, so that the program notices nothing.
// Then the call has no timeout, and cannot return a part of its result. `pid`: the process that makes the call, whose
// descriptors are looked up. False for each call that is not known. Source: signal(7), "Interruption of system calls".
bool is_restarted_after_handler(std::int32_t pid, const Syscall& call);

}  // namespace forksight::proc
