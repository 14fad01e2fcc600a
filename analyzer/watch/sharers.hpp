// Processes of other threads that share one memory (CLONE_VM): who of them could end a wait.
#pragma once

#include <cstdint>
#include <vector>

#include "watch/evidence.hpp"

namespace forksight::watch {

// The threads of processes that share our memory, but for one that sleeps in vfork() until we are gone.
void add_sharers(std::int32_t pid, const std::vector<std::int32_t>& sharers, std::vector<Waker>& wakers);

// A child of vfork() takes and finds locks under the tid of the thread that called it: an owner that is no thread of
// its own is one of whoever shares its memory.
void find_owner_among(const std::vector<std::int32_t>& sharers, WaitFacts& facts);

}  // namespace forksight::watch
