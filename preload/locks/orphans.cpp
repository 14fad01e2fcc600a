#include "locks/orphans.hpp"

#include <errno.h>
#include <string.h>

#include <atomic>
#include <iterator>

#include "guest/busy_flag.hpp"
#include "guest/config.hpp"
#include "guest/mappings.hpp"
#include "guest/memory.hpp"
#include "guest/sys.hpp"
#include "locks/held_stacks.hpp"
#include "locks/lock_cures.hpp"
#include "locks/lock_memory.hpp"
#include "locks/orphan_proof.hpp"
#include "locks/orphan_table.hpp"
#include "locks/semaphore_use.hpp"
#include "record/own_ids.hpp"
#include "record/thread_records.hpp"
#include "record/touch_events.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::LockKind;
using trace::TouchAction;

constexpr std::size_t kTouchStackBytes = 16U << 10U;
constexpr int kMostYields = 10'000;

FORKSIGHT_WRITTEN_AT_FORK constinit BusyFlag g_recovering;

// An annotated lock may have a lock of libc as its first member. Then two locks have the same address.
bool is_custom(LockKind kind) { return kind == LockKind::kCustom; }

bool is_same_lock(std::uint64_t tagged, const volatile void* lock, LockKind kind) {
  return tagged != 0 && lock_address(tagged) == reinterpret_cast<std::uint64_t>(lock) &&
         is_custom(lock_kind(tagged)) == is_custom(kind);
}

// False if the memory had a lock of another kind at the fork. Then the memory was reused, and the recorded state does
// not apply.
bool is_same_kind(LockKind recorded, LockKind asked) {
  const auto is_rwlock = [](LockKind kind) { return kind == LockKind::kRwlockRead || kind == LockKind::kRwlockWrite; };
  return recorded == asked || (is_rwlock(recorded) && is_rwlock(asked));
}

// True for a mutex that several processes share. The owner of such a mutex may be a thread of the parent that still
// lives. glibc sets the pshared bit of every robust mutex (nptl/pthread_mutex_init.c). So a robust mutex counts as
// shared only if it is in a shared mapping.
bool is_process_shared(const MutexMemory& mutex, const volatile void* lock) {
  return mutex.is_shared() && (!mutex.is_robust() || is_in_shared_mapping(lock));
}

// `memory` is a copy of the lock at `lock`. True if thread `tid` may hold the lock: the lock is taken, and records no
// other owner. False for a lock that several processes share. This function is out of line, so that its copy of the
// lock is not part of the deepest frame of a fork.
__attribute__((noinline)) bool confirms(LockKind kind, const void* memory, const volatile void* lock,
                                        std::int32_t tid) {
  switch (kind) {
    case LockKind::kMutex: {
      const auto mutex = decode_lock<MutexMemory>(memory);
      return mutex.is_held() && (mutex.owner == tid || mutex.owner == 0) && !is_process_shared(mutex, lock);
    }
    case LockKind::kRwlockRead: {
      const auto rwlock = decode_lock<RwlockMemory>(memory);
      return rwlock.shared == 0 && rwlock.reader_count() != 0;
    }
    case LockKind::kRwlockWrite: {
      const auto rwlock = decode_lock<RwlockMemory>(memory);
      return rwlock.shared == 0 && rwlock.cur_writer == tid;
    }
    case LockKind::kSpinlock: return decode_lock<SpinlockMemory>(memory).is_held();
    case LockKind::kSemaphore: {
      const auto semaphore = decode_lock<SemaphoreMemory>(memory);
      return semaphore.shared == 0 && semaphore.is_empty() &&
             !is_signal_semaphore(reinterpret_cast<std::uint64_t>(lock));
    }
    case LockKind::kGuard: return is_initialising(memory);
    case LockKind::kCustom: return true;  // only its annotations say who holds it
    case LockKind::kBarrier:
    case LockKind::kCondition: break;  // see lost_waiters.hpp
  }
  return false;
}

// True for a lock that the forking thread holds, and that it cannot release in the child.
__attribute__((noinline)) bool breaks_for_holder(LockKind kind, const void* memory) {
  if (kind == LockKind::kMutex) return decode_lock<MutexMemory>(memory).checks_owner();
  return kind == LockKind::kRwlockWrite;
}

Orphan* remember(std::uint64_t tagged, std::uint64_t held, std::uint64_t fork, std::int32_t tid, const void* memory) {
  return add_orphan({tagged, held, fork, tid, state_of(lock_kind(tagged), memory), false, false, false, false});
}

Orphan* find_given(const volatile void* lock) {
  for (std::uint32_t i = 0; i < orphan_count(); ++i) {
    if (orphan_at(i).given && is_same_lock(orphan_at(i).tagged, lock, LockKind::kMutex)) return &orphan_at(i);
  }
  return nullptr;
}

std::uint64_t append_held(std::uint64_t fork, std::uint64_t tagged, const void* memory, std::size_t bytes, Slot& holder,
                          std::uint64_t stack) {
  trace::HeldRecord record{fork,  lock_address(tagged), ensure_thread_record(holder),
                           stack, lock_kind(tagged),    static_cast<std::uint32_t>(bytes),
                           {}};
  memcpy(record.memory, memory, bytes);
  if (is_custom(record.kind)) {
    record.memory_bytes = 1;
    record.memory[0] = (tagged & kSharedHold) != 0 ? 1 : 0;
  }
  return append(trace::RecordType::kHeld, record);
}

bool collect_from(Slot& holder, std::uint64_t fork, std::int32_t tid_at_fork, bool is_forking) {
  bool found = false;
  for (const HeldLock* at = &holder.held[1]; at < holder.top && at < std::end(holder.held); ++at) {
    const HeldLock entry = *at;
    if (entry.lock == 0 || is_moved(holder, at)) continue;
    // If the thread had ended before the fork, it could not post the semaphore in the parent either. So the fork did
    // not orphan the semaphore.
    if (lock_kind(entry.lock) == LockKind::kSemaphore &&
        holder.state.load(std::memory_order_relaxed) == SlotState::kEnded)
      continue;
    std::uint8_t memory[56] = {};
    const std::size_t bytes = lock_bytes(lock_kind(entry.lock));
    const auto* lock = reinterpret_cast<const void*>(lock_address(entry.lock));
    if (read_memory(lock, memory, bytes) != bytes) continue;
    if (!confirms(lock_kind(entry.lock), memory, lock, tid_at_fork)) continue;
    const std::uint64_t stack = record_held_stack(entry.site, holder, is_forking);
    const std::uint64_t held = append_held(fork, entry.lock, memory, bytes, holder, stack);
    // A fork by the bare system call does not change the thread id that libc uses in the child. The lock records this
    // id, so the child can unlock the lock. Only a new id prevents that.
    const bool is_renamed = lock_tid() != tid_at_fork;
    if (is_forking && !(is_renamed && breaks_for_holder(lock_kind(entry.lock), memory))) continue;
    // The forking thread has taken the lock. So the lock is no longer an orphan of an earlier fork.
    if (is_forking) forget_orphan(lock, lock_kind(entry.lock));
    Orphan* const orphan = remember(entry.lock, held, fork, tid_at_fork, memory);
    if (orphan == nullptr) continue;
    orphan->by_forking_thread = is_forking;
    // If the thread took the lock several times, the lock has several entries. At the first entry, the lock is given to
    // the child. After that, the lock's owner is no longer the id that the thread had at the fork, so nothing is done
    // at the later entries.
    orphan->given = is_forking && cures(trace::Cure::kSelfHeld) &&
                    give_to_child(const_cast<void*>(lock), lock_kind(entry.lock), tid_at_fork, lock_tid());
    found = true;
  }
  if (holder.overflow != 0) append_note(trace::NoteCode::kHeldOverflow, holder.overflow);
  if (holder.overflow != 0 && is_forking) note_unknown_holders();
  return found || holder.overflow != 0;
}

// True if the lock is still in the state in which the fork left it.
bool is_still_lost(const Orphan& orphan) {
  std::uint8_t memory[56] = {};
  const LockKind kind = lock_kind(orphan.tagged);
  const std::size_t bytes = lock_bytes(kind);
  const auto* lock = reinterpret_cast<const void*>(lock_address(orphan.tagged));
  if (read_memory(lock, memory, bytes) != bytes) return false;
  return confirms(kind, memory, lock, orphan.holder_tid);
}

// Called for a mutex that no entry of the table matches. The fork may have come after a thread had acquired the mutex,
// and before the thread's held array had an entry. The mutex itself still records its owner. If the owner is a lost
// thread, adds the mutex to the orphans.
Orphan* adopt_by_owner(const volatile void* lock) {
  MutexMemory mutex{};
  if (!read_lock(lock, mutex)) return nullptr;
  if (!mutex.is_held() || mutex.owner <= 0) return nullptr;
  if (is_process_shared(mutex, lock)) return nullptr;
  if (find_slot_by_lock_tid(mutex.owner, true) != nullptr) return nullptr;
  Slot* const holder = find_slot_by_lock_tid(mutex.owner, false);
  if (holder == nullptr || sys::thread_exists(sys::getpid(), mutex.owner)) return nullptr;
  std::uint8_t memory[56] = {};
  memcpy(memory, const_cast<const void*>(lock), lock_bytes(LockKind::kMutex));
  const std::uint64_t tagged = tag_lock(lock, LockKind::kMutex);
  const std::uint64_t fork = t_slot != nullptr ? t_slot->fork_record : 0;
  const std::uint64_t held = append_held(fork, tagged, memory, lock_bytes(LockKind::kMutex), *holder, 0);
  Orphan* const orphan = remember(tagged, held, fork, mutex.owner, memory);
  if (orphan != nullptr) orphan->by_owner = true;
  return orphan;
}

Orphan* find_orphan(const volatile void* lock, LockKind kind, bool shared) {
  for (std::uint32_t i = 0; i < orphan_count(); ++i) {
    Orphan& orphan = orphan_at(i);
    if (orphan.given || !is_same_lock(orphan.tagged, lock, kind)) continue;
    if (!is_same_kind(lock_kind(orphan.tagged), kind)) continue;
    // A reader does not wait for readers.
    if (shared && (orphan.tagged & kSharedHold) != 0) continue;
    if (kind == LockKind::kRwlockRead && lock_kind(orphan.tagged) == LockKind::kRwlockRead) continue;
    // A spinlock does not record whether processes share it. If processes share the spinlock, its owner in the parent
    // may still be alive.
    if (kind == LockKind::kSpinlock && is_in_shared_mapping(lock)) continue;
    if (is_still_lost(orphan)) return &orphan;
  }
  return kind == LockKind::kMutex ? adopt_by_owner(lock) : nullptr;
}

std::uint64_t append_touch(const Orphan& orphan, trace::TouchKind kind, TouchAction action, std::uint32_t flags,
                           const Site& site) {
  const std::uint64_t stack = append_stack(site, t_slot, kTouchStackBytes, false, Importance::kFinding);
  const trace::TouchRecord touch{
      orphan.fork_record, kind, action, orphan.held_record, 0, lock_address(orphan.tagged), stack, 0, 0, flags, 0};
  return append(trace::RecordType::kTouch, touch, Importance::kFinding);
}

std::uint32_t count_lost_readers(std::uint64_t address) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < orphan_count(); ++i) {
    count += orphan_at(i).tagged == tag_lock(reinterpret_cast<void*>(address), LockKind::kRwlockRead) ? 1U : 0U;
  }
  return count;
}

// True if the lock is proven to be lost (orphan_proof.hpp).
bool is_surely_lost(const Orphan& orphan, const Site& site) {
  if (orphan.tagged == 0) return false;
  return is_proven_lost(
      {orphan.tagged, orphan.holder_tid, count_lost_readers(lock_address(orphan.tagged)), orphan.state, site.sp});
}

// Waits until no other thread recovers a lock. Returns false if another thread still recovers one. Only one thread at a
// time recovers locks. So a second thread that wants the same lock finds it recovered, and the lock's entry removed.
// The wait is bounded, because this code may run in a signal handler that has interrupted the recovering thread.
bool begin_recovery() {
  for (int i = 0; i < kMostYields; ++i) {
    if (g_recovering.take()) return true;
    sys::yield();
  }
  return false;
}

bool recover(const Orphan& orphan, const Site& site) {
  if (!begin_recovery()) return false;
  const std::uint64_t tagged = orphan.tagged;
  const bool proven = is_surely_lost(orphan, site);
  auto* const lock = reinterpret_cast<void*>(lock_address(tagged));
  // The entry is removed first, because a thread of the child may take the lock as soon as it is recovered.
  if (proven) forget_orphan(lock, lock_kind(tagged));
  const bool recovered = proven && recover_lock(lock, lock_kind(tagged));
  g_recovering.give_back();
  return recovered;
}

TouchAction act_on(const Orphan& orphan, bool timed, const Site& site) {
  switch (g_config.on_orphan) {
    case trace::OrphanPolicy::kRecover: return recover(orphan, site) ? TouchAction::kRecovered : TouchAction::kNone;
    case trace::OrphanPolicy::kAbort:
      return !timed && is_surely_lost(orphan, site) ? TouchAction::kAborted : TouchAction::kNone;
    case trace::OrphanPolicy::kReport: break;
  }
  return TouchAction::kNone;
}

}  // namespace

void forget_orphan(const volatile void* lock, LockKind kind, bool keep_readers) {
  for (std::uint32_t i = 0; i < orphan_count(); ++i) {
    if (keep_readers && (orphan_at(i).tagged & kSharedHold) != 0) continue;
    if (is_same_lock(orphan_at(i).tagged, lock, kind)) orphan_at(i).tagged = 0;
  }
}

void end_process() {
  sys::call(SYS_tgkill, sys::getpid(), sys::gettid(), SIGABRT);
  for (;;) sys::call(SYS_exit_group, 128 + SIGABRT);
}

// Reads the frozen held arrays, checks each entry against the lock's own memory, and writes the facts.
void at_fork::Orphans::reads(const Fork& fork_now) {
  Slot* const forking = &fork_now.self;
  bool found = locks_are_watched();
  const std::uint64_t fork = fork_now.record;
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    Slot& slot = slot_at(i);
    const SlotState state = slot.state.load(std::memory_order_relaxed);
    if (&slot == forking || depth(slot) == 0 || slot.epoch + 1 != epoch()) continue;
    if (state != SlotState::kLive && state != SlotState::kEnded) continue;
    found = collect_from(slot, fork, slot.lock_tid, false) || found;
  }
  found = (depth(*forking) != 0 && collect_from(*forking, fork, forking->lock_tid, true)) || found;
  const std::uint32_t unknown = take_count_of_unstored_orphans();
  if (unknown != 0) append_note(trace::NoteCode::kHeldOverflow, unknown);
  if (!found) return;
  g_slow_locks |= kSlowOrphans;
  t_fast = nullptr;
}

Touch touch_lock(const volatile void* lock, LockKind kind, bool timed, const Site& site, bool shared) {
  notice_unseen_fork();
  Orphan* const orphan = find_orphan(lock, kind, shared);
  if (orphan == nullptr) return {0};
  Orphan told = *orphan;
  orphan->touched = true;
  const TouchAction action = act_on(*orphan, timed, site);
  const std::uint64_t record =
      append_touch(told, trace::TouchKind::kLock, action,
                   (timed ? trace::kTouchTimed : 0U) | (told.by_owner ? trace::kTouchByOwner : 0U), site);
  touch_recorded(record);
  if (action == TouchAction::kAborted) end_process();
  return {record};
}

void end_touch(const Touch& touch, int result) {
  if (touch.record == 0) return;
  append(trace::RecordType::kTouchEnd, trace::TouchEndRecord{touch.record, result, 0}, Importance::kFinding);
}

void touch_refused_unlock(const volatile void* lock, int result, const Site& site) {
  for (std::uint32_t i = 0; i < orphan_count(); ++i) {
    Orphan& orphan = orphan_at(i);
    if (!orphan.by_forking_thread || !is_same_lock(orphan.tagged, lock, LockKind::kMutex) || orphan.touched) continue;
    orphan.touched = true;
    end_touch({append_touch(orphan, trace::TouchKind::kUnlockRefused, TouchAction::kNone, 0, site)}, result);
    return;
  }
}

void forget_acquired(const volatile void* lock, LockKind kind, const Site& site) {
  if (kind == LockKind::kRwlockRead) return;  // lost readers stay lost when another thread becomes a reader
  const Orphan* const given = find_given(lock);
  // If a mutex that was given to the child has a count above 1, the thread has locked the mutex once more. If a child
  // handler has initialised the mutex again, and the thread takes it for the first time, nothing is recorded.
  const bool is_relock = given != nullptr && lock_kind(given->tagged) == LockKind::kMutex &&
                         decode_lock<MutexMemory>(const_cast<const void*>(lock)).count > 1;
  if (is_relock) end_touch({append_touch(*given, trace::TouchKind::kLock, TouchAction::kGiven, 0, site)}, 0);
  forget_orphan(lock, kind);
}

void forget_released(const volatile void* lock, const Site& site) {
  const Orphan* const given = find_given(lock);
  if (given != nullptr) {
    end_touch({append_touch(*given, trace::TouchKind::kUnlockRefused, TouchAction::kGiven, 0, site)}, 0);
  }
  forget_orphan(lock, LockKind::kMutex);
}

void forget_given_to_child(const volatile void* lock, const Site& site) {
  if (find_given(lock) != nullptr) forget_released(lock, site);
}

}  // namespace forksight
