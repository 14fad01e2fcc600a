// The held array of the calling thread: push on acquisition, pop on release. This is the lock path; nothing here
// walks, hashes, allocates or calls.
//
// Order of the stores: `top` first, then the site, then `lock`. A signal handler that locks in between uses the
// next entry and gives it back; a forked child that freezes in between sees lock == 0, a hole. On release `lock` is
// cleared first. Compiler fences suffice: the only concurrent reader is a forked child, whose copy was taken by the
// kernel after every store that it contains.
#pragma once

#include <atomic>

#include "slots.hpp"

namespace forksight {

inline void compiler_fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

inline void store_site(Site& to, Frame frame) {
  to.pc = frame.address[1];
  to.sp = reinterpret_cast<std::uint64_t>(frame.address + 2);
  to.fp = frame.address[0];
}

inline void push_held(Slot* slot, std::uint64_t tagged, Frame frame) {
  HeldLock* const entry = slot->top;
  if (FORKSIGHT_UNLIKELY(entry == slot->held + 1 + kMaxHeldLocks)) {
    ++slot->overflow;
    return;
  }
  slot->top = entry + 1;
  compiler_fence();
  store_site(entry->site, frame);
  compiler_fence();
  entry->lock = tagged;
}

// Removes the innermost entry of the lock at `lock` if it is the innermost of all; `kind` is the likeliest of its
// kinds.
inline bool pop_held(Slot* slot, const volatile void* lock, trace::LockKind kind) {
  HeldLock* const entry = slot->top - 1;
  if (FORKSIGHT_UNLIKELY(entry->lock != tag_lock(lock, kind))) return false;
  entry->lock = 0;
  compiler_fence();
  slot->top = entry;
  return true;
}

// The same for an entry anywhere in the array, of whatever kind; false if there is none (locked by another thread, or
// before the shim was ready).
bool pop_held_slow(Slot* slot, std::uint64_t lock);

// For locks that one thread may take many times without giving back (a semaphore that is a signal): one entry.
void push_held_once_slow(Slot* slot, std::uint64_t tagged, Frame frame);
inline void push_held_once(Slot* slot, std::uint64_t tagged, Frame frame) {
  if (FORKSIGHT_LIKELY(slot->top == slot->held + 1)) {
    push_held(slot, tagged, frame);
  } else {
    push_held_once_slow(slot, tagged, frame);
  }
}

}  // namespace forksight
