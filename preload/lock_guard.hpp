// The three steps that lock hooks share. The fast path of an acquisition is: call, compare, push.
#pragma once

#include <errno.h>

#include "held.hpp"
#include "next.hpp"
#include "orphans.hpp"

namespace forksight {

// EOWNERDEAD: a robust mutex was acquired, its former owner is dead.
inline bool was_acquired(int result) { return result == 0 || result == EOWNERDEAD; }

inline void note_acquired(const volatile void* lock, trace::LockKind kind, const Site& site) {
  Slot* slot = t_slot;
  if (FORKSIGHT_UNLIKELY(slot == nullptr)) slot = own_slot();
  if (FORKSIGHT_LIKELY(slot != nullptr)) push_held(slot, tag_lock(lock, kind), site);
}

// Before the real unlock: afterwards the lock may be somebody else's, or its memory gone.
inline bool note_released(const volatile void* lock, HeldLock* popped = nullptr) {
  Slot* slot = t_slot;
  return slot != nullptr && pop_held(slot, lock, popped);
}

// In an armed child: try first; if the lock is taken, say what is known about it before blocking.
// `try_lock` returns EBUSY for a taken lock; `lock` is the call that may block.
template <class TryLock, class Lock>
int acquire_armed(const volatile void* object, trace::LockKind kind, bool timed, const Site& site, TryLock try_lock, Lock lock) {
  int result = try_lock();
  if (result != EBUSY) {
    if (was_acquired(result)) forget_orphan(object);
    return was_acquired(result) ? result : lock();
  }
  const Touch touch = touch_lock(object, kind, timed, site);
  result = lock();
  end_touch(touch, result);
  return result;
}

}  // namespace forksight
