// Tells whether a signal handler disturbs a system call.
#pragma once

#include <cstdint>
#include <optional>

#include "proc/proc_text.hpp"

namespace forksight::proc {

// True if the kernel restarts a futex call of this operation after an interruption, if the call has no timeout.
bool is_restarted_futex(std::uint64_t operation);

// True if the kernel makes the call again after a signal handler with SA_RESTART, so that the program notices nothing.
// Then the call has no timeout, and cannot return a part of its result. False for each call that forksight does not
// know. `pid`: the process that makes the call and has its descriptors. Source: signal(7), "Interruption of system
// calls".
bool is_restarted_after_handler(std::int32_t pid, const Syscall& call);

// False if the call waits for a futex word that no longer has the value for which the thread went to sleep. When
// anything makes the kernel restart such a call, the call returns at once. For example, a condition variable of Rust
// counts its notifications in the word, and a notification that wakes another thread changes the word. `word`: the
// value of the word; nullopt if it cannot be read.
bool would_wait_again(const Syscall& call, std::optional<std::uint32_t> word);

}  // namespace forksight::proc
