#include "locks/lock_cures.hpp"

#include <limits.h>
#include <linux/futex.h>

#include <atomic>

#include "guest/mappings.hpp"
#include "guest/sys.hpp"
#include "locks/lock_memory.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::LockKind;

// The head of the list of a thread's robust mutexes, which the kernel follows when the thread dies (linux/futex.h). In
// glibc's list, each `next` points to the `next` of the following mutex. The word before each `next` points back. The
// head has such a word before its `next`, too (nptl/descr.h, pthreadP.h).
struct RobustList {
  std::uint64_t next;  // bit 0: the next mutex is priority-inheriting
  std::int64_t futex_offset;
  std::uint64_t pending;
};
constexpr std::uint64_t kPiBit = 1;

// Enters a mutex into the list of robust mutexes again, because glibc empties this list in the child. Without the
// entry, the kernel would not mark the mutex if the thread died while it held the mutex.
bool enter_robust_list(MutexMemory& mutex) {
  RobustList* head = nullptr;
  std::size_t bytes = 0;
  if (sys::call(SYS_get_robust_list, 0, sys::word(&head), sys::word(&bytes)) != 0) return false;
  if (head == nullptr || bytes != sizeof *head || head->next == 0) return false;
  const auto node = reinterpret_cast<std::uint64_t>(&mutex.list_next);
  reinterpret_cast<std::uint64_t*>(head->next & ~kPiBit)[-1] = node;
  mutex.list_next = head->next;
  mutex.list_previous = reinterpret_cast<std::uint64_t>(head);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  head->next = node | (mutex.is_pi() ? kPiBit : 0);
  return true;
}

bool give_mutex(MutexMemory& mutex, std::int32_t parent_tid, std::int32_t child_tid) {
  if (mutex.owner != parent_tid) return false;
  if (mutex.is_robust() && !enter_robust_list(mutex)) return false;
  // Robust and priority-inheriting mutexes also have the owner in the futex word, together with the kernel's bit for
  // waiters. That bit is cleared, because the child has no waiters.
  if (mutex.has_tid_in_lock()) mutex.lock = static_cast<std::uint32_t>(child_tid);
  mutex.owner = child_tid;
  return true;
}

// Writes the state of a rwlock that a writer holds, and that no thread waits for. At the fork the lock may count
// waiting readers and writers, but the child does not have these threads.
bool give_rwlock(RwlockMemory& rwlock, std::int32_t parent_tid, std::int32_t child_tid) {
  if (rwlock.cur_writer != parent_tid) return false;
  rwlock.readers = RwlockMemory::kWritePhase | RwlockMemory::kWriteLocked;
  rwlock.writers = 0;
  rwlock.wrphase_futex = 1;
  rwlock.writers_futex = 1;
  rwlock.cur_writer = child_tid;
  return true;
}

// Writes the word that says whether the lock is taken. This is done last, because from then on a thread of the child
// may take the lock. A thread of the child may already wait for the lock, because the lock was not yet proven to be
// lost when the wait began. This function wakes the thread, so that it tries again.
void set_free(std::uint32_t& word, std::uint32_t value) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
  sys::call(SYS_futex, sys::word(&word), FUTEX_WAKE_PRIVATE, INT_MAX);
}

void recover_mutex(MutexMemory& mutex) {
  mutex.count = 0;
  mutex.owner = 0;
  mutex.users = 0;
  set_free(mutex.lock, mutex.has_ceiling() ? mutex.lock & MutexMemory::kCeilingBits : 0);
}

void recover_rwlock(RwlockMemory& rwlock) {
  rwlock.cur_writer = 0;
  rwlock.writers = 0;
  set_free(rwlock.wrphase_futex, 0);
  set_free(rwlock.writers_futex, 0);
  set_free(rwlock.readers, 0);
}

}  // namespace

bool give_to_child(void* lock, LockKind kind, std::int32_t parent_tid, std::int32_t child_tid) {
  if (!is_in_private_mapping(lock)) return false;
  switch (kind) {
    case LockKind::kMutex: return give_mutex(*static_cast<MutexMemory*>(lock), parent_tid, child_tid);
    case LockKind::kRwlockWrite: return give_rwlock(*static_cast<RwlockMemory*>(lock), parent_tid, child_tid);
    default: return false;
  }
}

bool recover_lock(void* lock, LockKind kind) {
  switch (kind) {
    case LockKind::kMutex: recover_mutex(*static_cast<MutexMemory*>(lock)); break;
    case LockKind::kRwlockRead:
    case LockKind::kRwlockWrite: recover_rwlock(*static_cast<RwlockMemory*>(lock)); break;
    case LockKind::kSpinlock: __atomic_store_n(static_cast<std::int32_t*>(lock), 1, __ATOMIC_RELEASE); break;
    case LockKind::kSemaphore:
      __atomic_store_n(static_cast<std::uint64_t*>(lock), 1, __ATOMIC_RELEASE);  // value 1, no waiters
      break;
    case LockKind::kGuard:  // afterwards the child initialises the static variable itself
      static_cast<std::uint32_t*>(lock)[1] = 0;
      set_free(*static_cast<std::uint32_t*>(lock), 0);
      break;
    case LockKind::kCustom: return false;  // only the program's own code knows its layout
    case LockKind::kBarrier:
    case LockKind::kCondition: return false;  // see lost_waiters.hpp
  }
  return true;
}

}  // namespace forksight
