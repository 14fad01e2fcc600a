// Waits of a forked child for what one of its lost threads was to do: there is no lock to point at, only a futex that
// nobody is left to wake. Used in the child only, before a wait that blocks.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "locks/orphans.hpp"

namespace forksight {

// In the child of `fork`, a ref to its record. fork-child-safe.
void note_lost_threads(std::uint64_t fork);
// This process, or an ancestor of it, is the child of a fork that left threads behind.
bool has_lost_threads();
std::uint64_t losing_fork();  // ref to the record of the latest such fork; 0: none

// A futex wait without a timeout is about to block. Records it if nothing but a signal handler can end it: the word is
// private to this process, still has the value, and no other thread exists. At most a few hundred times a process.
Touch touch_futex(const volatile std::uint32_t* word, std::uint32_t operation, std::uint32_t value, const Site& site);

}  // namespace forksight
