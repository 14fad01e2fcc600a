// Futex waits of a forked child that one of its lost threads should have ended. No known lock is involved, only a futex
// that no thread of the child can wake. Used only in the child, before a wait that blocks.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "locks/orphans.hpp"

namespace forksight {

// Called in the child of `fork`, which is a ref to the record. fork-child-safe.
void note_lost_threads(std::uint64_t fork);
// True if this process, or an ancestor of it, is the child of a fork that lost threads.
bool has_lost_threads();
std::uint64_t latest_fork_with_losses();  // ref to the record of the latest such fork; 0: none

// A futex wait without a timeout is about to block. Records it if only a signal handler, or nothing, can end it: the
// word is private to this process, still has the value, and no other thread exists. At most a few hundred times in a
// process.
Touch touch_futex(const volatile std::uint32_t* word, std::uint32_t operation, std::uint32_t value, const Site& site);

}  // namespace forksight
