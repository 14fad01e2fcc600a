// The held array of a thread is the array of the locks that it holds: push on acquisition, pop on release. Every hook
// of a lock uses this code. The fast paths do not walk a stack, compute a hash, allocate memory or call a function.
//   The store to `top` makes a complete entry visible. pop_held() does not clear the entry. A signal handler may take
//   and release a lock before the store to `top`. The handler then uses the same entry, and leaves its own values
//   there. So the entry is checked after the store to `top`. `sp` was stored first, and a handler stores another `sp`,
//   because the handler's frame is elsewhere. So if `sp` is unchanged, the rest of the entry is unchanged, too. For a
//   forked child, compiler fences are enough: each store that its copy of the array contains was made before the copy.
//   Other readers check what they read (handler_wait.cpp), or use only the locks of the entries (orphan_proof.cpp).
#pragma once

#include <atomic>

#include "record/slots.hpp"

namespace forksight {

inline void compiler_fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

inline void store_site(Site& to, Frame frame) {
  to.pc = frame.address[1];
  to.sp = reinterpret_cast<std::uint64_t>(frame.address + 2);
  to.fp = frame.address[0];
}

// True for the address behind the last entry of an array.
inline bool is_end(const HeldLock* entry) {
  return (reinterpret_cast<std::uint64_t>(entry) & (kHeldArrayBytes - 1)) == 0;
}

inline void push_held(Slot* slot, std::uint64_t tagged, Frame frame) {
  HeldLock* const entry = slot->top;
  if (FORKSIGHT_UNLIKELY(is_end(entry))) {
    ++slot->overflow;
    return;
  }
  const Site site = frame.site();
  do {
    entry->site.sp = site.sp;
    compiler_fence();
    entry->lock = tagged;
    entry->site.pc = site.pc;
    entry->site.fp = site.fp;
    compiler_fence();
    slot->top = entry + 1;
    compiler_fence();
  } while (FORKSIGHT_UNLIKELY(entry->site.sp != site.sp));
}

// These two functions together do what push_held() does. fill_held() is called before the call that takes the lock, and
// show_held() after it. Other threads wait while the lock is held, so as much as possible is written before the call. A
// signal handler that locks in between uses the same entry, as in push_held(). If the handler leaves a lock held, it
// has moved `top`, and show_held() writes a new entry.
inline HeldLock* fill_held(Slot* slot, std::uint64_t tagged, Frame frame) {
  HeldLock* const entry = slot->top;
  if (FORKSIGHT_UNLIKELY(is_end(entry))) return entry;
  const Site site = frame.site();
  entry->site.sp = site.sp;
  compiler_fence();
  entry->lock = tagged;
  entry->site.pc = site.pc;
  entry->site.fp = site.fp;
  compiler_fence();
  return entry;
}
inline void show_held(Slot* slot, HeldLock* entry, std::uint64_t tagged, Frame frame) {
  if (FORKSIGHT_LIKELY(slot->top == entry && !is_end(entry))) {
    slot->top = entry + 1;
    compiler_fence();
    if (FORKSIGHT_LIKELY(entry->site.sp == frame.site().sp)) return;
    slot->top = entry;
  }
  push_held(slot, tagged, frame);
}

// Removes the innermost entry if it is for the libc lock at `lock`. A mutex has the tag 0, which saves a comparison.
template <bool is_mutex = false>
inline bool pop_held(Slot* slot, const volatile void* lock) {
  HeldLock* const entry = slot->top - 1;
  const auto address = reinterpret_cast<std::uint64_t>(lock);
  const bool is_it = is_mutex ? entry->lock == address : is_libc_lock_at(entry->lock, address);
  if (FORKSIGHT_UNLIKELY(!is_it)) return false;
  slot->top = entry;
  return true;
}

// Removes an entry anywhere in the array.
void drop_held(Slot* slot, HeldLock* entry);

// As pop_held(), but the entry may be anywhere in the array, and of any kind. False if the array has no such entry:
// another thread took the lock, or the shim was not ready when the lock was taken.
bool pop_held_slow(Slot* slot, std::uint64_t lock);

// As push_held(), but for semaphores. A thread may take a semaphore many times without posting it. So the semaphore
// gets only one entry. A semaphore that is known to be a signal gets no entry, except in an empty array, because the
// fast path does not look the semaphore up. A fork ignores such an entry (orphans.cpp).
void push_held_once_slow(Slot* slot, std::uint64_t tagged, Frame frame);
inline void push_held_once(Slot* slot, std::uint64_t tagged, Frame frame) {
  if (FORKSIGHT_LIKELY(slot->top == slot->held + 1)) {
    push_held(slot, tagged, frame);
  } else {
    push_held_once_slow(slot, tagged, frame);
  }
}

}  // namespace forksight
