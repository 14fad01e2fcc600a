#include "foresight/lock_order.hpp"

#include <string.h>

#include "foresight/foresight.hpp"
#include "foresight/key_table.hpp"
#include "foresight/lives.hpp"
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
  std::uint64_t records[kPlaces];  // refs; 0: the record is being written, or the trace had no room for it
};

constinit Orders* g_orders = nullptr;
constinit std::uint64_t g_full_note = 0;

bool is_shared(const HeldLock* entry) { return lock_kind(entry->lock) == LockKind::kRwlockRead; }

// True if the lock has a number. Only orders of such locks are recorded.
bool is_link(const Slot& slot, const HeldLock* entry) {
  return is_followed(entry) && note_of(&slot, entry).number != 0;
}

// Visits the locks that the thread took before `taken` and still holds. Skips locks for which gate_number() is 0. A
// mutex or rwlock that the thread took several times is visited once.
template <class Visit>
void for_each_held(const Slot& slot, const HeldLock* taken, Visit visit) {
  for (const HeldLock* entry = &slot.held[1]; entry < taken; ++entry) {
    if (gate_number(&slot, entry) != 0) visit(entry);
  }
}

// Adds the moment of an acquisition to the record. Another process may have changed the record, so its values are
// checked before they serve as bounds.
void add_moment(LockOrderRecord& order, std::uint64_t moment) {
  const std::uint32_t used = order.used;
  if (used == 0 || used > trace::kOrderMoments || order.moments[used - 1] == moment) return;
  const std::uint32_t at = used < trace::kOrderMoments ? used : used - 1;
  __atomic_store_n(&order.moments[at], moment, __ATOMIC_RELAXED);
  __atomic_store_n(&order.used, at + 1, __ATOMIC_RELAXED);
}

// Writes the stack of an acquisition at the first order that needs it. `has_continued`: the thread has continued since
// the acquisition, so the function that took the lock may have returned.
__attribute__((noinline, cold)) void ensure_stack(const Slot& slot, const HeldLock* entry, bool has_continued) {
  std::uint64_t& stack = note_of(&slot, entry).stack;
  if (stack == 0) stack = append_stack(entry->site, &slot, kOrderStackBytes, has_continued, Importance::kFact);
}

// True for a rwlock whose readers wait while a writer waits.
bool queues(const HeldLock* taken) {
  const LockKind kind = lock_kind(taken->lock);
  if (kind != LockKind::kRwlockRead && kind != LockKind::kRwlockWrite) return false;
  const auto* const lock = reinterpret_cast<const void*>(lock_address(taken->lock));
  return decode_lock<RwlockMemory>(lock).flags == RwlockMemory::kReadersWaitBehindWriters;
}

// Writes the record of an order: `taken` was acquired while `held` was held. Returns the record's reference; 0: the
// trace has no room. Not inlined, because this function is rarely called, and the frame of its caller must stay small.
// `held` is null if a writer takes a rwlock for which queues() is true, and holds no lock with a number.
__attribute__((noinline, cold)) std::uint64_t write_order(Slot& slot, const HeldLock* held, const HeldLock* taken,
                                                          std::uint32_t gates) {
  if (held != nullptr) want_module_of(held->site.pc);
  want_module_of(taken->site.pc);
  const std::uint64_t thread = ensure_thread_record(slot);
  const std::uint64_t life = ensure_life_record(slot);
  Record record(trace::RecordType::kLockOrder, sizeof(LockOrderRecord) + gates * sizeof(trace::OrderGate));
  if (!record) return 0;
  auto* gate = reinterpret_cast<trace::OrderGate*>(record.as<LockOrderRecord>() + 1);
  for_each_held(slot, taken, [&](const HeldLock* entry) {
    if (entry == held) return;
    *gate++ = {gate_number(&slot, entry), is_shared(entry) ? 1U : 0U, entry > held && !is_link(slot, entry) ? 1U : 0U};
  });
  auto& order = *record.as<LockOrderRecord>();
  memset(&order, 0, sizeof order);
  order.life = life;
  order.thread = thread;
  if (held != nullptr) {
    order.held = lock_address(held->lock);
    order.held_number = note_of(&slot, held).number;
    order.held_stack = note_of(&slot, held).stack;
    order.held_kind = static_cast<std::uint32_t>(lock_kind(held->lock));
  }
  order.taken = lock_address(taken->lock);
  order.taken_number = note_of(&slot, taken).number;
  order.taken_stack = note_of(&slot, taken).stack;
  order.taken_kind = static_cast<std::uint32_t>(lock_kind(taken->lock));
  order.times = 1;
  order.moments[0] = moment_of(slot);
  order.used = 1;
  order.gates = gates;
  order.flags = queues(taken) ? trace::kOrderQueues : 0U;
  return record.commit();
}

void record_order(Slot& slot, const HeldLock* held, const HeldLock* taken, std::uint64_t set, std::uint32_t others) {
  const std::uint64_t number = held == nullptr ? 0 : note_of(&slot, held).number;
  const std::uint64_t key = KeyTable<0>::key_of(mix(set, number));
  std::uint32_t at = g_orders->keys.find(key);
  if (at != kNoPlace) {
    const std::uint64_t reference = g_orders->records[at];
    // The record was written by this thread, so no other thread updates it.
    auto* const order = find_record<LockOrderRecord>(reference, trace::RecordType::kLockOrder);
    if (order == nullptr) return;
    __atomic_store_n(&order->times, order->times + 1, __ATOMIC_RELAXED);
    add_moment(*order, moment_of(slot));
    return;
  }
  if (held != nullptr && !is_still_held(slot, held)) {
    note_of(&slot, held).number = 0;
    note_of(&slot, held).gate = 0;
    return;
  }
  if (!open_trace()) return;
  at = g_orders->keys.add(key);
  if (at == kNoPlace) return count_in_note(g_full_note, trace::NoteCode::kLockOrderFull);
  g_orders->records[at] = 0;
  // The stacks are written here and not in write_order(), so that the call stack stays less deep.
  if (held != nullptr) ensure_stack(slot, held, true);
  ensure_stack(slot, taken, false);
  g_orders->records[at] = write_order(slot, held, taken, others);
}

}  // namespace

std::size_t lock_order_bytes() { return g_config.lock_order ? sizeof(Orders) : 0; }
void start_lock_order(void* memory) { g_orders = static_cast<Orders*>(memory); }
void forget_orders_in_child() { g_full_note = 0; }

void record_orders(Slot& slot, const HeldLock* taken) {
  std::uint32_t held = 0;
  std::uint32_t links = 0;
  std::uint64_t set = mix(mix(kSeed, life_of(slot)), note_of(&slot, taken).number << 1U | (is_shared(taken) ? 1U : 0U));
  for_each_held(slot, taken, [&](const HeldLock* entry) {
    ++held;
    if (is_link(slot, entry)) ++links;
    set = mix(set, gate_number(&slot, entry) << 1U | (is_shared(entry) ? 1U : 0U));
  });
  if (links == 0) {
    if (lock_kind(taken->lock) == LockKind::kRwlockWrite && queues(taken))
      record_order(slot, nullptr, taken, set, held);
    return;
  }
  for_each_held(slot, taken, [&](const HeldLock* entry) {
    if (is_link(slot, entry)) record_order(slot, entry, taken, set, held - 1);
  });
}

}  // namespace forksight
