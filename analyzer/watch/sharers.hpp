// Processes with other threads that share one memory (CLONE_VM): which of them could end a wait.
#pragma once

#include <cstdint>
#include <vector>

#include "watch/evidence.hpp"

namespace forksight::watch {

// Adds the threads of processes that share the memory of `pid`, except a thread that sleeps in vfork() until `pid`
// execs or ends.
void add_sharers(std::int32_t pid, const std::vector<std::int32_t>& sharers, std::vector<Waker>& wakers);

// A child of vfork() takes and finds locks under the tid of the thread that called vfork(). So an owner that is not a
// thread of the process itself is a thread of a process that shares its memory.
void find_owner_among(const std::vector<std::int32_t>& sharers, WaitFacts& facts);

}  // namespace forksight::watch
