// Signals that reach a process without anybody who sends them, and what a handler of theirs may end.
#pragma once

#include <cstdint>
#include <vector>

#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

// Of `caught`, those that the kernel may send by itself: at a time, or because a descriptor became ready (O_ASYNC). Bit
// 0 is signal 1. SIGCHLD depends on the children and is left out. `tid`: a thread that lives.
std::uint64_t find_timed_signals(std::int32_t tid, std::uint64_t caught);

// Does a thread wait for a descriptor, a child or a lock of a file. Any handler ends such a call: its caller sees EINTR
// and goes on. A wait for a mutex or a thread goes on after a handler that returns.
bool is_open_to_handlers(const proc::Round& round, const std::vector<WaitFacts>& facts);

}  // namespace forksight::watch
