// Finds out which of the processes that share one memory (CLONE_VM) could end a wait.
#pragma once

#include <cstdint>
#include <vector>

#include "watch/evidence.hpp"

namespace forksight::watch {

// Adds to `wakers` all threads of `sharers`, which share the memory of `pid`. Leaves out a thread that sleeps in
// vfork() until `pid` execs or ends.
void add_sharers(std::int32_t pid, const std::vector<std::int32_t>& sharers, std::vector<Waker>& wakers);

// Returns those of `sharers` that may hold a lock of `pid` under the tid of another thread. glibc stores the tid of the
// thread structure, and a process of clone(CLONE_VM) uses that of its maker. Leaves out the two processes of a vfork():
// all locks that the child takes record the tid of the thread that waits in vfork(), and this wait leads to the child.
std::vector<std::int32_t> find_other_users(std::int32_t pid, const std::vector<std::int32_t>& sharers);

// Call this for a lock whose owner seems to have ended, because the process has no thread with the owner's tid. Looks
// for the owner among the threads of `sharers`. If the owner is found, notes in `facts` that the owner lives and can
// end the wait. Such a lock occurs in a child of vfork(): all locks that the child takes record the tid of the thread
// that called vfork().
void find_owner_among(const std::vector<std::int32_t>& sharers, WaitFacts& facts);

}  // namespace forksight::watch
