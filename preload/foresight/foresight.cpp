#include "foresight/foresight.hpp"

#include "foresight/hold_times.hpp"
#include "foresight/lock_number.hpp"
#include "foresight/lock_order.hpp"
#include "forksight/trace/foresight.hpp"
#include "guest/config.hpp"
#include "guest/sys.hpp"
#include "loader/modules.hpp"
#include "record/thread_records.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::LockKind;

struct Notes {
  HeldNote of[1 + kMaxHeldLocks];
};

constinit Notes* g_notes = nullptr;
constinit std::atomic<std::uint64_t> g_lives{0};
constinit std::atomic<bool> g_modules_are_old{false};

bool is_followed(LockKind kind) {
  return kind == LockKind::kMutex || kind == LockKind::kRwlockRead || kind == LockKind::kRwlockWrite;
}

const HeldLock* find_held(const Slot& slot, const volatile void* lock) {
  const HeldLock* entry = slot.top - 1;
  while (entry > slot.held && !is_libc_lock_at(entry->lock, reinterpret_cast<std::uint64_t>(lock))) --entry;
  return entry > slot.held ? entry : nullptr;
}

// A recursive lock, or a second read.
bool is_held_below(const Slot& slot, const HeldLock* entry, std::uint64_t number) {
  for (const HeldLock* other = &slot.held[1]; other < entry; ++other) {
    if (is_followed(other) && note_of(&slot, other).number == number) return true;
  }
  return false;
}

}  // namespace

void start_foresight() {
  if (!g_config.lock_order && !g_config.predict) return;
  const std::size_t notes = std::size_t{kFirstSlots} * sizeof(Notes);
  void* memory = sys::map(notes + lock_order_bytes() + hold_times_bytes(), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (memory == nullptr) return;
  g_notes = static_cast<Notes*>(memory);
  auto* const rest = static_cast<std::byte*>(memory) + notes;
  start_lock_order(rest);
  start_hold_times(rest + lock_order_bytes());
  g_slow_locks |= kSlowForesight;
}

HeldNote& note_of(const Slot* slot, const HeldLock* entry) {
  static HeldNote unused;  // of threads beyond the first: stays empty
  return slot->index < kFirstSlots ? g_notes[slot->index].of[entry - slot->held] : unused;
}

bool is_followed(const HeldLock* entry) { return entry->lock != 0 && is_followed(lock_kind(entry->lock)); }

std::uint64_t gate_number(const Slot* slot, const HeldLock* entry) {
  constexpr std::uint64_t kUnnumbered = std::uint64_t{1} << 62U;
  if (entry->lock == 0) return 0;
  if (is_followed(entry)) return note_of(slot, entry).number;
  const LockKind kind = lock_kind(entry->lock);
  const bool is_exclusive =
      kind == LockKind::kSpinlock || (kind == LockKind::kCustom && (entry->lock & kSharedHold) == 0);
  return is_exclusive ? lock_address(entry->lock) | kUnnumbered : 0;
}

std::uint64_t life_of(Slot& slot) {
  if (slot.life == 0) slot.life = g_lives.fetch_add(1, std::memory_order_relaxed) + 1;
  return slot.life;
}

std::uint64_t ensure_life_record(Slot& slot) {
  if (slot.life_record == 0) {
    slot.life_record = append(trace::RecordType::kThreadLife, trace::ThreadLifeRecord{0, life_of(slot), 0, 0});
  }
  return slot.life_record;
}

std::uint64_t now_of_lives() { return g_lives.load(std::memory_order_relaxed); }

void want_module_of(std::uint64_t pc) {
  if (find_module(pc) == nullptr) g_modules_are_old.store(true, std::memory_order_relaxed);
}

void begin_life(Slot& slot) {
  if (!foresees()) return;
  begin_window();
  Slot* const creator = own_slot();
  const bool is_told = g_config.lock_order && open_trace();
  if (is_told && module_count() == 0) refresh_modules();
  const std::uint64_t parent = is_told && creator != nullptr ? ensure_life_record(*creator) : 0;
  const std::uint64_t life = life_of(slot);
  if (!is_told) return;
  slot.life_record = append(trace::RecordType::kThreadLife, trace::ThreadLifeRecord{parent, life, 0, 0});
}

void meet_foreign_thread() {
  if (foresees()) begin_window();
}

// One that has ended is not reused before it is joined; of others that had its stack before, it is the last.
std::uint64_t find_life(std::uint64_t thread_pointer) {
  if (!foresees()) return 0;
  const Slot* found = nullptr;
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    const Slot& slot = slot_at(i);
    const SlotState state = slot.state.load(std::memory_order_acquire);
    if (state == SlotState::kFree || slot.epoch != epoch() || slot.thread_pointer != thread_pointer) continue;
    if (found == nullptr || slot.life > found->life) found = &slot;
  }
  return found == nullptr ? 0 : found->life_record;
}

void note_joined(std::uint64_t life_record) {
  auto* const life = find_record<trace::ThreadLifeRecord>(life_record, trace::RecordType::kThreadLife);
  if (life == nullptr) return;
  __atomic_store_n(&life->joined, g_lives.fetch_add(1, std::memory_order_relaxed) + 1, __ATOMIC_RELAXED);
}

void foresee_acquired(Slot* slot, const volatile void* lock, LockKind kind, bool waits) {
  const HeldLock* const entry = slot->top - 1;
  if (slot->index >= kFirstSlots) return;
  // The array may have been full.
  if (!is_followed(kind) || entry == slot->held || entry->lock != tag_lock(lock, kind)) return;
  HeldNote& note = note_of(slot, entry);
  note = {};
  // A process with one thread can neither hang by an order nor lose a lock.
  if (!g_had_threads.load(std::memory_order_relaxed)) return;
  const std::uint64_t number = number_of(kind, lock);
  if (number == 0 || is_held_below(*slot, entry, number)) return;
  note.number = number;
  if (g_config.lock_order && waits) record_orders(*slot, entry);
  if (!g_config.predict) return;
  if (waits) touch_racy(*slot, entry);
  begin_hold(*slot, entry);
}

void foresee_released(Slot* slot, const volatile void* lock) {
  const HeldLock* const entry = find_held(*slot, lock);
  if (entry != nullptr && is_followed(entry)) end_hold(*slot, entry);
  // Here, where the stack is not deep yet.
  if (FORKSIGHT_UNLIKELY(g_modules_are_old.load(std::memory_order_relaxed))) {
    g_modules_are_old.store(false, std::memory_order_relaxed);
    refresh_modules();
  }
}

void move_note(Slot* slot, HeldLock* to, const HeldLock* from) { note_of(slot, to) = note_of(slot, from); }

void at_fork::Foresight::reads(const Fork& fork) {
  if (!foresees()) return;
  Slot& self = fork.self;
  freeze_hold_times(self);
  forget_orders_in_child();
  self.life = 0;
  self.life_record = 0;
}

}  // namespace forksight
