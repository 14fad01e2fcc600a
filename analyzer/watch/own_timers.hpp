// Signals that reach a process without a sender, and the calls that their handlers may end.
#pragma once

#include <cstdint>
#include <vector>

#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

// Those of `caught` that the kernel may send by itself: at a set time, or because a descriptor became ready (O_ASYNC).
// Bit 0 is signal 1. SIGCHLD depends on the children and is left out. `tid`: a living thread of the process.
std::uint64_t find_timed_signals(std::int32_t tid, std::uint64_t caught);

// True if a thread waits for a descriptor, a child or a file lock. Any handler ends such a call: its caller sees EINTR
// and goes on. A wait for a mutex or a thread goes on after a handler that returns.
bool is_open_to_handlers(const proc::Round& round, const std::vector<WaitFacts>& facts);

}  // namespace forksight::watch
