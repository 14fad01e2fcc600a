// A thread that calls these functions is in the middle of a fork, and is about to sleep. So it does not matter how long
// a search through all slots takes.
#include "locks/handler_wait.hpp"

#include "guest/sys.hpp"
#include "locks/lock_memory.hpp"
#include "record/thread_records.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::HandlerWaitKind;
using trace::HandlerWaitRecord;
using trace::LockKind;

constexpr std::size_t kStackBytes = 16U << 10U;
// Few bytes, because the handler that took the lock may have returned. Then only the recorded site is certain.
constexpr std::size_t kHeldStackBytes = 2048;

// The tid of the owner in the lock itself; 0: none.
std::int32_t owner_of(std::uint64_t object, LockKind kind) {
  const auto* const lock = reinterpret_cast<const void*>(object);
  if (kind == LockKind::kMutex) {
    MutexMemory mutex{};
    return read_lock(lock, mutex) ? mutex.owner : 0;
  }
  if (kind == LockKind::kRwlockRead || kind == LockKind::kRwlockWrite) {
    RwlockMemory rwlock{};
    return read_lock(lock, rwlock) ? rwlock.cur_writer : 0;
  }
  return 0;
}

// Finds where the thread of `slot` took the lock. The entries of a living thread may move down when it releases other
// locks. So a copied entry counts only if the lock was in it before and after the copy.
bool find_entry(const Slot& slot, std::uint64_t object, Site& site) {
  const std::uint32_t entries = depth(slot);
  for (std::uint32_t i = 1; i <= entries && i <= kMaxHeldLocks; ++i) {
    const HeldLock& entry = slot.held[i];
    const std::uint64_t lock = __atomic_load_n(&entry.lock, __ATOMIC_ACQUIRE);
    if (lock_address(lock) != object) continue;
    site = entry.site;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&entry.lock, __ATOMIC_RELAXED) == lock) return true;
  }
  return false;
}

struct Holder {
  Slot* slot;
  bool has_site;
  Site site;  // where the owner took the lock
};

// Returns the holder of the lock: the owner in the lock's memory, or else a thread whose array of held locks has the
// lock. In a forked child, the holder may be a thread that does not exist there.
Holder find_holder(std::uint64_t object, LockKind kind) {
  if (const std::int32_t owner = owner_of(object, kind); owner > 0) {
    Slot* slot = find_slot_by_lock_tid(owner, true);
    if (slot == nullptr) slot = find_slot_by_lock_tid(owner, false);
    Holder holder{slot, false, {}};
    holder.has_site = slot != nullptr && find_entry(*slot, object, holder.site);
    return holder;
  }
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    Slot& slot = slot_at(i);
    if (slot.state.load(std::memory_order_acquire) != SlotState::kLive) continue;
    Site site{};
    if (find_entry(slot, object, site)) return {&slot, true, site};
  }
  return {nullptr, false, {}};
}

// Records the locks that earlier handlers of this fork took. These are the locks that the thread holds now, except
// those that it held when it called fork().
__attribute__((noinline)) void record_holds(const Slot& self, std::uint64_t wait) {
  for (std::uint32_t i = self.held_at_entry + 1; i <= depth(self) && i <= kMaxHeldLocks; ++i) {
    const HeldLock& entry = self.held[i];
    const LockKind kind = lock_kind(entry.lock);
    if (entry.lock == 0 || (kind != LockKind::kMutex && kind != LockKind::kRwlockWrite)) continue;
    const std::uint64_t stack = append_stack(entry.site, &self, kHeldStackBytes, true, Importance::kFinding);
    append(trace::RecordType::kHandlerHeld,
           trace::HandlerHeldRecord{wait, lock_address(entry.lock), stack, static_cast<std::uint32_t>(kind), 0},
           Importance::kFinding);
  }
}

}  // namespace

HandlerWait begin_handler_wait(HandlerWaitKind kind, std::uint64_t object, LockKind lock_kind, bool timed,
                               const Site& site) {
  Slot* const self = t_slot;
  if (!is_in_handler(self) || self->handler_run == 0) return {0};
  Holder holder{nullptr, false, {}};
  if (kind == HandlerWaitKind::kJoin) holder.slot = find_slot_by_thread_pointer(object);
  if (kind == HandlerWaitKind::kLock) holder = find_holder(object, lock_kind);
  const std::uint64_t owner = holder.slot != nullptr ? ensure_thread_record(*holder.slot) : 0;
  // The holder may have released the lock by now. Then its stack has changed, and the copy contains meaningless bytes.
  const std::uint64_t owner_stack =
      holder.has_site ? append_stack(holder.site, holder.slot, kStackBytes, holder.slot != self, Importance::kFinding)
                      : 0;
  const std::uint64_t stack = append_stack(site, self, kStackBytes, false, Importance::kFinding);
  Record record(trace::RecordType::kHandlerWait, sizeof(HandlerWaitRecord), Importance::kFinding);
  if (!record) return {0};
  auto* const wait = record.as<HandlerWaitRecord>();
  wait->run = self->handler_run;
  wait->object = object;
  wait->owner = owner;
  wait->owner_stack = owner_stack;
  wait->stack = stack;
  wait->kind = kind;
  wait->lock_kind = static_cast<std::uint32_t>(lock_kind);
  wait->timed = timed ? 1U : 0U;
  wait->done = 0;
  const std::uint64_t reference = record.commit();
  // fork_site is set from the beginning of fork() until the shim's own prepare handler, which runs last.
  if (kind == HandlerWaitKind::kLock && self->fork_site.pc != 0) record_holds(*self, reference);
  return {reference};
}

void end_handler_wait(const HandlerWait& wait) {
  if (wait.record == 0) return;
  auto* const record = find_record<HandlerWaitRecord>(wait.record, trace::RecordType::kHandlerWait);
  if (record != nullptr) __atomic_store_n(&record->done, 1, __ATOMIC_RELEASE);
}

}  // namespace forksight
