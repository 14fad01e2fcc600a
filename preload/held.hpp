// The held array of the calling thread: push on acquisition, pop on release. This is the lock path; nothing here
// walks, hashes, allocates or calls.
//
// Order of the stores: `depth` first, then the site, then `lock`. A signal handler that locks in between uses the
// next entry and gives it back; a forked child that freezes in between sees lock == 0, a hole. On release `lock` is
// cleared first. Compiler fences suffice: the only concurrent reader is a forked child, whose copy was taken by the
// kernel after every store that it contains.
#pragma once

#include <atomic>

#include "slots.hpp"

namespace forksight {

inline void compiler_fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

inline void push_held(Slot* slot, std::uint64_t tagged, const Site& site) {
  const std::uint32_t depth = slot->depth;
  if (FORKSIGHT_UNLIKELY(depth >= kMaxHeldLocks)) {
    ++slot->overflow;
    return;
  }
  slot->depth = depth + 1;
  HeldLock& entry = slot->held[depth];
  compiler_fence();
  entry.site = site;
  compiler_fence();
  entry.lock = tagged;
}

// Out of order, or not there at all (locked by another thread, or before the shim was ready).
bool pop_held_slow(Slot* slot, std::uint64_t lock, HeldLock* popped);

// Removes the innermost entry of the lock at `lock`, of whatever kind.
inline bool pop_held(Slot* slot, const volatile void* lock, HeldLock* popped = nullptr) {
  const auto address = reinterpret_cast<std::uint64_t>(lock);
  const std::uint32_t depth = slot->depth;
  if (FORKSIGHT_LIKELY(depth > 0 && lock_address(slot->held[depth - 1].lock) == address)) {
    HeldLock& entry = slot->held[depth - 1];
    if (popped != nullptr) *popped = entry;
    entry.lock = 0;
    compiler_fence();
    slot->depth = depth - 1;
    return true;
  }
  return pop_held_slow(slot, address, popped);
}

// For locks that one thread may take many times without giving back (a semaphore that is a signal): one entry.
void push_held_once(Slot* slot, std::uint64_t tagged, const Site& site);

}  // namespace forksight
