// Futex waits of a forked child that only a lost thread could have ended. Such a wait is not a wait for a lock that the
// shim knows. The child waits on a futex that none of its threads can wake. Used only in the child, before a wait that
// blocks.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "locks/orphans.hpp"

namespace forksight {

// Notes whether the fork lost threads. Called in the child. `fork`: ref to the record of the fork. fork-child-safe.
void note_lost_threads(std::uint64_t fork);
// True if this process, or an ancestor of it, is the child of a fork that lost threads.
bool has_lost_threads();
std::uint64_t latest_fork_with_losses();  // ref to the record of the latest such fork; 0: none

// Called before a futex wait without a timeout. Records the wait if nothing can end it except perhaps a signal handler.
// This is so if the word is private to this process, still has the expected value, and no other thread exists. Records
// at most a few hundred waits in a process.
Touch touch_futex(const volatile std::uint32_t* word, std::uint32_t operation, std::uint32_t value, const Site& site);

}  // namespace forksight
