#include "threads/ended_holders.hpp"

#include "guest/sys.hpp"
#include "locks/lock_memory.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

// True if the thread with this id still holds the lock of the entry. Only mutexes and rwlocks count. Semaphores and
// spinlocks record no owner, and often another thread posts a semaphore. A read lock is still held if the rwlock has
// any readers, because only this thread could have released its own read lock.
bool is_owned(const HeldLock& entry, std::int32_t tid) {
  const auto* lock = reinterpret_cast<const void*>(lock_address(entry.lock));
  if (entry.lock == 0) return false;
  if (lock_kind(entry.lock) == trace::LockKind::kMutex) {
    MutexMemory mutex{};
    return read_lock(lock, mutex) && mutex.holder() == tid;
  }
  if (lock_kind(entry.lock) == trace::LockKind::kRwlockRead) {
    RwlockMemory rwlock{};
    return read_lock(lock, rwlock) && rwlock.reader_count() != 0;
  }
  if (lock_kind(entry.lock) == trace::LockKind::kRwlockWrite) {
    RwlockMemory rwlock{};
    return read_lock(lock, rwlock) && rwlock.cur_writer == tid;
  }
  return false;
}

}  // namespace

bool mark_if_ended_with_locks(Slot& slot) {
  bool owned = false;
  for (const HeldLock* entry = &slot.held[1]; entry < slot.top && !owned; ++entry)
    owned = is_owned(*entry, slot.lock_tid);
  if (!owned) return false;
  slot.flags |= trace::kThreadEnded;
  slot.record = 0;
  return true;
}

void check_for_ended_holder(Slot& slot) {
  SlotState ended = SlotState::kEnded;
  if (slot.state.load(std::memory_order_acquire) != ended || slot.epoch != epoch()) return;
  if (depth(slot) == 0 || (slot.flags & trace::kThreadEnded) != 0) return;
  if (sys::thread_exists(sys::getpid(), slot.tid)) return;
  // Claims the slot, because another thread may be about to reuse it.
  if (!slot.state.compare_exchange_strong(ended, SlotState::kReserved, std::memory_order_acq_rel)) return;
  mark_if_ended_with_locks(slot);
  slot.state.store(SlotState::kEnded, std::memory_order_release);
}

}  // namespace forksight
