#include "locks/orphan_proof.hpp"

#include "guest/mappings.hpp"
#include "guest/sys.hpp"
#include "guest/tasks.hpp"
#include "loader/modules.hpp"
#include "locks/lock_memory.hpp"
#include "locks/posts.hpp"
#include "locks/semaphore_use.hpp"
#include "record/slots.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::LockKind;

constinit bool g_has_unknown_holders = false;

const void* memory_of(const LostLock& lost) { return reinterpret_cast<const void*>(lock_address(lost.tagged)); }

bool holds(const Slot& slot, std::uint64_t address) {
  for (const HeldLock* entry = &slot.held[1]; entry < slot.top; ++entry) {
    if (is_libc_lock_at(__atomic_load_n(&entry->lock, __ATOMIC_RELAXED), address)) return true;
  }
  return false;
}

// True if no thread of this process holds the lock or is about to take it. A thread sets `taking` before it requests
// the lock, and clears it after the entry exists. So `taking` is read before the entries.
bool is_held_by_nobody_here(std::uint64_t address) {
  if (g_has_unknown_holders || g_lost_threads_unrecorded != 0) return false;
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    const Slot& slot = slot_at(i);
    if (slot.epoch != epoch() || slot.state.load(std::memory_order_acquire) != SlotState::kLive) continue;
    if (&slot != t_slot && __atomic_load_n(&slot.taking, __ATOMIC_ACQUIRE) == address) return false;
    if (slot.overflow != 0 || holds(slot, address)) return false;
  }
  return true;
}

// True if the lock still has the state of the fork, and no thread of this process has the id of its holder.
bool names_lost_thread(const LostLock& lost, LockKind kind) {
  return lost.holder_tid > 0 && state_of(kind, memory_of(lost)) == lost.state &&
         find_slot_by_lock_tid(lost.holder_tid, true) == nullptr && !sys::thread_exists(sys::getpid(), lost.holder_tid);
}

// True if nobody can post the semaphore any more: no other thread, no handler, and no put() into a queue.
bool has_no_poster(const LostLock& lost) {
  if (count_tasks() != 1) return false;
  refresh_modules();  // the child may have loaded the module of a handler
  return !may_handler_run() && !is_call_of_simple_queue(lost.waiter_sp);
}

bool is_lost(const LostLock& lost, LockKind kind) {
  const void* const memory = memory_of(lost);
  const std::uint64_t address = lock_address(lost.tagged);
  switch (kind) {
    case LockKind::kMutex: {
      const auto mutex = decode_lock<MutexMemory>(memory);
      return mutex.is_held() && mutex.owner == lost.holder_tid && names_lost_thread(lost, kind);
    }
    case LockKind::kRwlockWrite:
      return decode_lock<RwlockMemory>(memory).cur_writer == lost.holder_tid && names_lost_thread(lost, kind);
    case LockKind::kRwlockRead: {
      const auto rwlock = decode_lock<RwlockMemory>(memory);
      return rwlock.cur_writer == 0 && rwlock.reader_count() == lost.lost_readers && is_held_by_nobody_here(address);
    }
    case LockKind::kSpinlock: return decode_lock<SpinlockMemory>(memory).is_held() && is_held_by_nobody_here(address);
    case LockKind::kSemaphore:
      return decode_lock<SemaphoreMemory>(memory).is_empty() && knows_all_signal_semaphores() &&
             !is_signal_semaphore(address) && is_held_by_nobody_here(address) && has_no_poster(lost);
    case LockKind::kGuard: return is_initialising(memory) && is_held_by_nobody_here(address);
    case LockKind::kCustom: return true;
    case LockKind::kBarrier:
    case LockKind::kCondition: break;
  }
  return false;
}

}  // namespace

LockState state_of(LockKind kind, const void* memory) {
  if (kind == LockKind::kMutex) {
    const auto mutex = decode_lock<MutexMemory>(memory);
    return {{static_cast<std::uint32_t>(mutex.owner), mutex.count, mutex.kind & MutexMemory::kAttributes}};
  }
  if (kind == LockKind::kRwlockWrite) {
    const auto rwlock = decode_lock<RwlockMemory>(memory);
    return {{static_cast<std::uint32_t>(rwlock.cur_writer), static_cast<std::uint32_t>(rwlock.shared), 0}};
  }
  return {};
}

void note_unknown_holders() { g_has_unknown_holders = true; }

bool is_proven_lost(const LostLock& lost) {
  const LockKind kind = lock_kind(lost.tagged);
  return is_lost(lost, kind) && is_in_private_mapping(memory_of(lost));
}

}  // namespace forksight
