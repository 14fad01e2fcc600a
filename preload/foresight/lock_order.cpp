#include "foresight/lock_order.hpp"

#include "foresight/foresight.hpp"
#include "foresight/key_table.hpp"
#include "forksight/trace/foresight.hpp"
#include "guest/config.hpp"
#include "guest/memory.hpp"
#include "guest/sys.hpp"
#include "locks/lock_memory.hpp"
#include "record/thread_records.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::LockKind;
using trace::LockOrderRecord;

constexpr std::size_t kOrderStackBytes = 2048;

struct Orders {
  KeyTable<0> keys;
  std::uint64_t records[kPlaces];  // refs; 0: being written, or there was no room in the trace
};

constinit Orders* g_orders = nullptr;
constinit std::uint64_t g_full_note = 0;

bool is_shared(const HeldLock* entry) { return lock_kind(entry->lock) == LockKind::kRwlockRead; }

// All that the thread holds, but not what it holds again.
template <class Visit>
void for_each_held(const Slot& slot, const HeldLock* taken, Visit visit) {
  for (const HeldLock* entry = &slot.held[1]; entry < taken; ++entry) {
    if (gate_number(&slot, entry) != 0) visit(entry);
  }
}

// An entry may be of a lock that somebody else has released: then its memory may be gone, too.
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

// Once for each time that it is taken, however many are taken under it. `gone_on`: its caller may have returned.
__attribute__((noinline, cold)) void ensure_stack(const Slot& slot, const HeldLock* entry, bool gone_on) {
  std::uint64_t& stack = note_of(&slot, entry).stack;
  if (stack == 0) stack = append_stack(entry->site, &slot, kOrderStackBytes, gone_on, Importance::kFact);
}

// Out of line, as what is rare: the frame of the look-up stays small.
__attribute__((noinline, cold)) std::uint64_t write_order(Slot& slot, const HeldLock* held, const HeldLock* taken,
                                                          std::uint32_t gates) {
  want_module_of(held->site.pc);
  want_module_of(taken->site.pc);
  const std::uint64_t thread = ensure_thread_record(slot);
  const std::uint64_t life = ensure_life_record(slot);
  Record record(trace::RecordType::kLockOrder, sizeof(LockOrderRecord) + gates * sizeof(trace::OrderGate));
  if (!record) return 0;
  auto* gate = reinterpret_cast<trace::OrderGate*>(record.as<LockOrderRecord>() + 1);
  for_each_held(slot, taken, [&](const HeldLock* entry) {
    if (entry != held) *gate++ = {gate_number(&slot, entry), is_shared(entry) ? 1U : 0U, 0};
  });
  auto& order = *record.as<LockOrderRecord>();
  order.life = life;
  order.thread = thread;
  order.held = lock_address(held->lock);
  order.taken = lock_address(taken->lock);
  order.held_number = note_of(&slot, held).number;
  order.taken_number = note_of(&slot, taken).number;
  order.held_stack = note_of(&slot, held).stack;
  order.taken_stack = note_of(&slot, taken).stack;
  order.first = now_of_lives();
  order.last = order.first;
  order.times = 1;
  order.held_kind = static_cast<std::uint32_t>(lock_kind(held->lock));
  order.taken_kind = static_cast<std::uint32_t>(lock_kind(taken->lock));
  order.gates = gates;
  order.reserved = 0;
  return record.commit();
}

void record_order(Slot& slot, const HeldLock* held, const HeldLock* taken, std::uint64_t set, std::uint32_t others) {
  HeldNote& note = note_of(&slot, held);
  const std::uint64_t key = KeyTable<0>::key_of(mix(set, note.number));
  std::uint32_t at = g_orders->keys.find(key);
  if (at != kNoPlace) {
    const std::uint64_t reference = g_orders->records[at];
    // This thread's own record.
    auto* const order = find_record<LockOrderRecord>(reference, trace::RecordType::kLockOrder);
    if (order == nullptr) return;
    __atomic_store_n(&order->times, order->times + 1, __ATOMIC_RELAXED);
    const std::uint64_t now = now_of_lives();
    if (order->last != now) __atomic_store_n(&order->last, now, __ATOMIC_RELAXED);
    return;
  }
  if (!is_still_held(slot, held)) {
    note.number = 0;
    return;
  }
  if (!open_trace()) return;
  at = g_orders->keys.add(key);
  if (at == kNoPlace) return count_in_note(g_full_note, trace::NoteCode::kLockOrderFull);
  g_orders->records[at] = 0;
  // Not within what follows: the stack need not be as deep.
  ensure_stack(slot, held, true);
  ensure_stack(slot, taken, false);
  g_orders->records[at] = write_order(slot, held, taken, others);
}

}  // namespace

std::size_t lock_order_bytes() { return g_config.lock_order ? sizeof(Orders) : 0; }
void start_lock_order(void* memory) { g_orders = static_cast<Orders*>(memory); }
void forget_orders_in_child() { g_full_note = 0; }

void record_orders(Slot& slot, const HeldLock* taken) {
  std::uint32_t held = 0;
  std::uint64_t set = mix(mix(kSeed, life_of(slot)), note_of(&slot, taken).number << 1U | (is_shared(taken) ? 1U : 0U));
  for_each_held(slot, taken, [&](const HeldLock* entry) {
    ++held;
    set = mix(set, gate_number(&slot, entry) << 1U | (is_shared(entry) ? 1U : 0U));
  });
  if (held == 0) return;
  for_each_held(slot, taken, [&](const HeldLock* entry) {
    if (is_followed(entry)) record_order(slot, entry, taken, set, held - 1);
  });
}

}  // namespace forksight
