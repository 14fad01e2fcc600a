#include "foresight/foresight.hpp"

#include "foresight/hold_times.hpp"
#include "foresight/lives.hpp"
#include "foresight/lock_number.hpp"
#include "foresight/lock_order.hpp"
#include "forksight/trace/foresight.hpp"
#include "guest/config.hpp"
#include "guest/memory.hpp"
#include "guest/sys.hpp"
#include "loader/modules.hpp"
#include "locks/lock_memory.hpp"
#include "locks/semaphore_use.hpp"
#include "record/thread_records.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::LockKind;

struct Notes {
  HeldNote of[1 + kMaxHeldLocks];
};

constexpr std::uint64_t kUnnumbered = std::uint64_t{1} << 62U;

constinit Notes* g_notes = nullptr;
constinit std::atomic<bool> g_modules_are_old{false};

bool is_followed(LockKind kind) {
  return kind == LockKind::kMutex || kind == LockKind::kRwlockRead || kind == LockKind::kRwlockWrite;
}

const HeldLock* find_held(const Slot& slot, const volatile void* lock) {
  const HeldLock* entry = slot.top - 1;
  while (entry > slot.held && !is_libc_lock_at(entry->lock, reinterpret_cast<std::uint64_t>(lock))) --entry;
  return entry > slot.held ? entry : nullptr;
}

// True if an entry before `entry` has the same lock: the thread took a recursive lock again, or reads a second time.
// `gate`: the lock's number according to gate_number().
bool is_held_below(const Slot& slot, const HeldLock* entry, std::uint64_t gate) {
  for (const HeldLock* other = &slot.held[1]; other < entry; ++other) {
    if (is_followed(other) && note_of(&slot, other).gate == gate) return true;
  }
  return false;
}

// Fills the note about a lock that the thread holds. Returns false if the lock has no number, or if the thread held the
// lock already.
bool fill_note(const Slot& slot, const HeldLock* entry) {
  HeldNote& note = note_of(&slot, entry);
  const LockKind kind = lock_kind(entry->lock);
  const std::uint64_t address = lock_address(entry->lock);
  const std::uint64_t number = number_of(kind, reinterpret_cast<const void*>(address));
  const std::uint64_t gate = number != 0 ? number : address | kUnnumbered;
  if (is_held_below(slot, entry, gate)) return false;
  note.number = number;
  note.gate = gate;
  return number != 0;
}

}  // namespace

void start_foresight() {
  if (!g_config.lock_order && !g_config.predict) return;
  const std::size_t notes = std::size_t{kFirstSlots} * sizeof(Notes);
  void* memory = sys::map(notes + lives_bytes() + lock_order_bytes() + hold_times_bytes(), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (memory == nullptr) return;
  g_notes = static_cast<Notes*>(memory);
  auto* const rest = static_cast<std::byte*>(memory) + notes;
  start_lives(rest);
  start_lock_order(rest + lives_bytes());
  start_hold_times(rest + lives_bytes() + lock_order_bytes());
  g_slow_locks |= kSlowForesight;
}

HeldNote& note_of(const Slot* slot, const HeldLock* entry) {
  static HeldNote unused;  // for threads whose slot is not one of the first kFirstSlots slots; it stays empty
  return slot->index < kFirstSlots ? g_notes[slot->index].of[entry - slot->held] : unused;
}

bool is_followed(const HeldLock* entry) { return entry->lock != 0 && is_followed(lock_kind(entry->lock)); }

std::uint64_t gate_number(const Slot* slot, const HeldLock* entry) {
  if (entry->lock == 0) return 0;
  if (is_followed(entry)) return note_of(slot, entry).gate;
  const LockKind kind = lock_kind(entry->lock);
  const std::uint64_t address = lock_address(entry->lock);
  const bool is_exclusive =
      kind == LockKind::kSpinlock || (kind == LockKind::kCustom && (entry->lock & kSharedHold) == 0) ||
      (kind == LockKind::kSemaphore && knows_all_signal_semaphores() && !is_signal_semaphore(address));
  return is_exclusive ? address | kUnnumbered : 0;
}

void note_early(Slot& slot) {
  if (slot.index >= kFirstSlots) return;
  for (const HeldLock* entry = &slot.held[1]; entry < slot.top; ++entry) {
    if (is_followed(entry) && is_still_held(slot, entry)) fill_note(slot, entry);
  }
}

bool is_still_held(const Slot& slot, const HeldLock* entry) {
  std::uint8_t memory[56];
  const LockKind kind = lock_kind(entry->lock);
  const std::size_t bytes = lock_bytes(kind);
  if (read_memory(reinterpret_cast<const void*>(lock_address(entry->lock)), memory, bytes) != bytes) {
    return false;
  }
  if (kind == LockKind::kMutex) return decode_lock<MutexMemory>(memory).owner == slot.lock_tid;
  const auto rwlock = decode_lock<RwlockMemory>(memory);
  return kind == LockKind::kRwlockWrite ? rwlock.cur_writer == slot.lock_tid : rwlock.reader_count() != 0;
}

void want_module_of(std::uint64_t pc) {
  if (find_module(pc) == nullptr) g_modules_are_old.store(true, std::memory_order_relaxed);
}

void track_acquired(Slot* slot, const volatile void* lock, LockKind kind, bool waits) {
  const HeldLock* const entry = slot->top - 1;
  if (slot->index >= kFirstSlots) return;
  // If the held array was full, the lock has no entry.
  if (!is_followed(kind) || entry == slot->held || entry->lock != tag_lock(lock, kind)) return;
  HeldNote& note = note_of(slot, entry);
  note = {};
  // In a process with one thread, no order of locks can cause a hang, and no fork can orphan a lock.
  if (!g_had_threads.load(std::memory_order_relaxed)) return;
  if (!fill_note(*slot, entry)) return;
  if (g_config.lock_order && waits) record_orders(*slot, entry);
  if (!g_config.predict) return;
  if (waits) touch_racy(*slot, entry);
  begin_hold(*slot, entry);
}

void track_released(Slot* slot, const volatile void* lock) {
  const HeldLock* const entry = find_held(*slot, lock);
  if (entry != nullptr) {
    if (is_followed(entry)) end_hold(*slot, entry);
    if (entry + 1 < slot->top) open_gate(*slot, entry);
  }
  // The table of modules is refreshed here and not in want_module_of(), because the call stack is less deep here.
  if (FORKSIGHT_UNLIKELY(g_modules_are_old.load(std::memory_order_relaxed))) {
    g_modules_are_old.store(false, std::memory_order_relaxed);
    refresh_modules();
  }
}

void move_note(Slot* slot, HeldLock* to, const HeldLock* from) { note_of(slot, to) = note_of(slot, from); }

void at_fork::Foresight::reads(const Fork& fork) {
  if (!tracks_lock_use()) return;
  Slot& self = fork.self;
  freeze_hold_times(self);
  forget_orders_in_child();
  begin_life_in_child(self);
}

}  // namespace forksight
