#include "locks/held.hpp"

#include "locks/lock_events.hpp"
#include "locks/semaphore_use.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

// The array of one thread has at most this many entries for semaphores. A thread that never posts the semaphores that
// it takes must not use up the room for locks.
constexpr std::uint32_t kMostSemaphores = 32;

// Moves the entries above a hole down. Otherwise a thread that always takes two locks and releases the first one first
// would fill the array with holes. A fork, by another thread or in a signal handler, may copy the array at any instant.
// In that copy each lock occurs once, with its own site, or twice. is_moved() detects that a lock occurs twice.
void close_holes(Slot* slot, HeldLock* hole) {
  if (slot->is_closing_holes) return;  // the caller is a signal handler that interrupted this function: the hole stays
  slot->is_closing_holes = true;
  compiler_fence();
  HeldLock* to = hole;
  for (HeldLock* from = hole + 1; from < slot->top; ++from) {
    if (from->lock == 0) continue;
    slot->moving_to = to;
    compiler_fence();
    slot->moving_from = from;
    compiler_fence();
    if (locks_are_observed()) held_moved(slot, to, from);
    to->site = from->site;
    compiler_fence();
    to->lock = from->lock;
    compiler_fence();
    from->lock = 0;
    compiler_fence();
    slot->moving_from = nullptr;
    compiler_fence();
    ++to;
  }
  slot->top = to;
  compiler_fence();
  slot->is_closing_holes = false;
}

}  // namespace

void drop_held(Slot* slot, HeldLock* entry) {
  // If the caller is a signal handler that interrupted the move of this entry, the lock is removed from the new place,
  // too.
  if (is_moved(*slot, entry)) slot->moving_to->lock = 0;
  entry->lock = 0;
  compiler_fence();
  // held_at_entry counts the locks that the thread took before it called fork(). An atfork handler may release one of
  // them.
  const bool is_of_before = entry <= slot->held + slot->held_at_entry;
  if (is_of_before && !slot->is_closing_holes) --slot->held_at_entry;
  close_holes(slot, entry);
}

bool pop_held_slow(Slot* slot, std::uint64_t lock) {
  HeldLock* entry = slot->top - 1;
  while (entry > slot->held && !is_libc_lock_at(entry->lock, lock)) --entry;
  if (entry == slot->held) return false;
  drop_held(slot, entry);
  return true;
}

void push_held_once_slow(Slot* slot, std::uint64_t tagged, Frame frame) {
  const bool is_signal = is_signal_semaphore(lock_address(tagged));
  HeldLock* oldest = nullptr;
  std::uint32_t semaphores = 0;
  for (HeldLock* entry = slot->top - 1; entry > slot->held; --entry) {
    if (lock_kind(entry->lock) == trace::LockKind::kSemaphore) {
      oldest = entry;
      ++semaphores;
    }
    if (entry->lock != tagged) continue;
    if (is_signal) {
      drop_held(slot, entry);
    } else {
      store_site(entry->site, frame);
    }
    return;
  }
  if (is_signal) return;
  if (semaphores >= kMostSemaphores) {
    drop_held(slot, oldest);
    ++slot->overflow;
  }
  push_held(slot, tagged, frame);
}

}  // namespace forksight
