// What all lock hooks share. The fast path of an acquisition consists of one thread-local load and branch, the real
// call, and a push.
#pragma once

#include <errno.h>

#include "loader/next.hpp"
#include "locks/handler_wait.hpp"
#include "locks/held.hpp"
#include "locks/lock_events.hpp"
#include "locks/lock_memory.hpp"
#include "locks/orphans.hpp"

namespace forksight {

// EOWNERDEAD: a robust mutex was acquired, and its former owner is dead.
inline bool was_acquired(int result) { return result == 0 || result == EOWNERDEAD; }

enum class Push { kEach, kOnce };  // see push_held_once

template <Push push>
inline void note_acquired(Slot* slot, const volatile void* lock, trace::LockKind kind, Frame frame) {
  if constexpr (push == Push::kEach) {
    push_held(slot, tag_lock(lock, kind), frame);
  } else {
    push_held_once(slot, tag_lock(lock, kind), frame);
  }
}

// Used in a forked child that inherited orphans (locks that none of its threads can unlock), and in an atfork handler.
// Shows other threads which lock this thread is asking for, until the lock is in the held array. orphan_proof.cpp reads
// Slot::taking.
class Taking {
 public:
  Taking(Slot* slot, const volatile void* object) : slot_(slot) {
    if (FORKSIGHT_LIKELY(slot_ == nullptr)) return;
    outer_ = slot_->taking;
    __atomic_store_n(&slot_->taking, reinterpret_cast<std::uint64_t>(object), __ATOMIC_RELEASE);
  }
  ~Taking() {
    if (FORKSIGHT_UNLIKELY(slot_ != nullptr)) __atomic_store_n(&slot_->taking, outer_, __ATOMIC_RELEASE);
  }
  Taking(const Taking&) = delete;
  Taking& operator=(const Taking&) = delete;

 private:
  Slot* slot_;
  std::uint64_t outer_ = 0;  // in a signal handler: the lock that the interrupted call is asking for
};

// For the child of a fork that orphaned locks, and for a thread inside of an atfork handler. If the lock is taken, this
// function records what is known about the lock. It does so before the real call, because the real call may block. To
// find out whether the lock is taken, this function reads the memory of the lock. It does not call trylock, because
// trylock differs from the real call. The real call may report that its deadline is invalid, but trylock takes no
// deadline. trylock is not a cancellation point. And if a robust mutex is not recoverable, trylock leaves it locked
// (glibc 2.36).
template <class Lock>
int acquire_watched(const volatile void* object, trace::LockKind kind, bool timed, Frame frame, Lock lock) {
  const bool taken = is_taken(kind, object);
  const Touch touch = taken && locks_are_watched() ? touch_lock(object, kind, timed, frame.site()) : Touch{0};
  const HandlerWait wait = taken
                               ? begin_handler_wait(trace::HandlerWaitKind::kLock,
                                                    reinterpret_cast<std::uint64_t>(object), kind, timed, frame.site())
                               : HandlerWait{0};
  const int result = lock();
  end_handler_wait(wait);
  end_touch(touch, result);
  if (was_acquired(result)) forget_acquired(object, kind, frame.site());
  return result;
}

template <Push push, class Lock>
__attribute__((noinline, cold)) int acquire_slow(const volatile void* object, trace::LockKind kind, bool timed,
                                                 Frame frame, Lock lock) {
  initialise();
  Slot* const slot = own_slot();
  const bool is_watched = locks_are_watched() || is_in_handler(slot);
  const Taking taking(is_watched ? slot : nullptr, object);
  const int result = is_watched ? acquire_watched(object, kind, timed, frame, lock) : lock();
  if (slot != nullptr && was_acquired(result)) {
    note_acquired<push>(slot, object, kind, frame);
    if (locks_are_observed()) lock_acquired(slot, object, kind, !timed);
  }
  return result;
}

// Calls `lock` and returns its result. On success, the held array has an entry for the lock. The site in the entry is
// the place from which the hook was called. This function is always inlined, so that FORKSIGHT_FRAME() is the frame of
// the hook. For pthread_mutex_lock, fast_path.hpp has this code in assembly.
template <Push push = Push::kEach, class Lock>
__attribute__((always_inline)) inline int acquire(const volatile void* object, trace::LockKind kind, bool timed,
                                                  Lock lock) {
  Slot* const slot = t_fast;
  if (FORKSIGHT_UNLIKELY(slot == nullptr)) {
    const Frame frame = FORKSIGHT_FRAME();
    const int result = acquire_slow<push>(object, kind, timed, frame, lock);
    keep(frame);
    return result;
  }
  // After the call, t_slot is used instead of t_fast: if a signal handler has forked meanwhile, t_fast may be null in
  // the child.
  if constexpr (push == Push::kEach) {
    HeldLock* const entry = fill_held(slot, tag_lock(object, kind), FORKSIGHT_FRAME());
    const int result = lock();
    if (FORKSIGHT_LIKELY(was_acquired(result))) show_held(t_slot, entry, tag_lock(object, kind), FORKSIGHT_FRAME());
    return result;
  } else {
    const int result = lock();
    if (FORKSIGHT_LIKELY(was_acquired(result))) note_acquired<push>(t_slot, object, kind, FORKSIGHT_FRAME());
    return result;
  }
}

// Calls a trylock. A trylock never blocks, so no Touch (orphans.hpp) is recorded.
template <Push push = Push::kEach, class TryLock>
__attribute__((always_inline)) inline int attempt(const volatile void* object, trace::LockKind kind, TryLock try_lock) {
  const bool is_watched = FORKSIGHT_UNLIKELY(t_fast == nullptr) && locks_are_watched();
  const Taking taking(is_watched ? own_slot() : nullptr, object);
  const int result = try_lock();
  if (!was_acquired(result)) return result;
  if (is_watched) forget_acquired(object, kind, FORKSIGHT_FRAME().site());
  Slot* const slot = own_slot();
  if (slot != nullptr) note_acquired<push>(slot, object, kind, FORKSIGHT_FRAME());
  if (slot != nullptr && locks_are_observed()) lock_acquired(slot, object, kind, false);
  return result;
}

// Removes the lock's entry. Called before the real unlock, because afterwards another thread may have the lock, or the
// memory of the lock may be gone. Returns false if the slow path is needed: the entry is not the innermost one, or
// t_fast is null.
template <bool is_mutex = false>
inline bool release_fast(const volatile void* lock) {
  Slot* const slot = t_fast;
  return FORKSIGHT_LIKELY(slot != nullptr) && pop_held<is_mutex>(slot, lock);
}

// Marks a function that does the slow part of a release. The hook calls the marked function last, and the compiler
// turns this call into a jump. So the frame of the marked function contains the return address of the hook. This
// address points into the function that called the hook.
#define FORKSIGHT_TAIL_CALLED __attribute__((noinline, cold))

inline bool release_slow(const volatile void* lock) {
  initialise();
  Slot* const slot = t_slot;
  if (slot != nullptr && locks_are_observed()) lock_released(slot, lock);
  return slot != nullptr && pop_held_slow(slot, reinterpret_cast<std::uint64_t>(lock));
}

}  // namespace forksight
