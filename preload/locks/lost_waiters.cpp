#include "locks/lost_waiters.hpp"

#include <string.h>

#include <algorithm>
#include <atomic>

#include "guest/config.hpp"
#include "guest/mappings.hpp"
#include "guest/sys.hpp"
#include "locks/condition_outcome.hpp"
#include "locks/lock_memory.hpp"
#include "record/thread_records.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

FORKSIGHT_WRITTEN_AT_FORK constinit bool g_sync_is_watched = true;

namespace {

using trace::LockKind;
using trace::SyncOperation;
using trace::TouchAction;

constexpr std::uint32_t kMaxLostWaits = 256;
constexpr std::uint32_t kMostWaitersRecorded = 4;  // for each object
constexpr int kMostYields = 10'000;
constexpr std::size_t kWaiterStackBytes = 16U << 10U;
constexpr std::size_t kTouchStackBytes = 16U << 10U;

enum class Stage : std::uint32_t {
  kUnseen,  // not touched yet
  kBusy,    // a thread is examining it for the first time
  kLost,    // has lost waiters
  kCured,   // had lost waiters, which the cure has removed
  kGone,    // has no lost waiters: the program re-made the object, the parent shares it, or it never had lost waiters
};

struct LostWait {
  std::uint64_t object;
  LockKind kind;
  std::atomic<Stage> stage;
  std::uint64_t fork_record;
  std::uint64_t thread_record;  // of one of its waiters
  std::uint64_t held_record;    // the first kHeld record about its waiters; 0: not written yet
  // the memory at the first touch; for a cured condition variable, the memory after the cure
  std::uint8_t memory[56];
  std::uint32_t lost;    // number of lost waiters, or lost arrivals
  bool was_stolen_from;  // a stolen signal was recorded
};

constinit LostWait g_lost[kMaxLostWaits] = {};
FORKSIGHT_WRITTEN_AT_FORK constinit std::uint32_t g_lost_count = 0;
// The number of objects with lost waiters for which the table had no room.
FORKSIGHT_WRITTEN_AT_FORK constinit std::uint32_t g_not_stored = 0;

LostWait* find(std::uint64_t object, LockKind kind) {
  for (std::uint32_t i = 0; i < g_lost_count; ++i) {
    if (g_lost[i].object == object && g_lost[i].kind == kind) return &g_lost[i];
  }
  return nullptr;
}

void remember(const Slot& waiter, LockKind kind, std::uint64_t fork) {
  LostWait* wait = find(waiter.wait_object, kind);
  if (wait == nullptr) {
    if (g_lost_count == kMaxLostWaits) {
      ++g_not_stored;
      return;
    }
    wait = &g_lost[g_lost_count++];
  }
  wait->object = waiter.wait_object;
  wait->kind = kind;
  wait->stage.store(Stage::kUnseen, std::memory_order_relaxed);
  wait->fork_record = fork;
  wait->thread_record = waiter.record;
  wait->held_record = 0;
  wait->was_stolen_from = false;
}

bool is_lost_waiter(const Slot& slot, const LostWait& wait) {
  const auto kind = wait.kind == LockKind::kCondition ? trace::WaitKind::kCondition : trace::WaitKind::kBarrier;
  const SlotState state = slot.state.load(std::memory_order_acquire);
  return slot.epoch != epoch() && state == SlotState::kLive && slot.wait_kind == kind &&
         slot.wait_object == wait.object;
}

// The layout of condition variables in the running libc. Null: the layout is not known, so no waiters count as lost.
const abi::ConditionLayout* condition_layout() { return abi::layout_of(g_libc.condition); }

// The number of waiting threads that the object's memory counts. Called before any thread of the child waits there, so
// all threads that are counted are lost.
std::uint32_t count_lost(LockKind kind, const void* memory) {
  if (kind == LockKind::kCondition) {
    const abi::ConditionLayout* const layout = condition_layout();
    if (layout == nullptr) return 0;
    const abi::Condition condition = abi::load_condition(*layout, memory);
    return condition.is_shared() ? 0 : condition.waiters();
  }
  const auto barrier = decode_lock<BarrierMemory>(memory);
  return barrier.shared != 0 ? 0 : barrier.in - barrier.out;
}

bool are_cured(LockKind kind) {
  return kind == LockKind::kCondition && (cures(trace::Cure::kCondvars) || cures(trace::Cure::kOrphans));
}

// Initialises a condition variable again, without waiters. Its clock, and whether processes share it, stay as they are.
// The word with the count of waiters is written last: a child that is forked meanwhile finds the old count, and
// initialises the condition variable again.
void remake(const abi::ConditionLayout& layout, std::uint64_t object) {
  auto* const words = reinterpret_cast<volatile std::uint32_t*>(object);
  const std::size_t wrefs = layout.wrefs / sizeof *words;
  for (std::size_t i = 0; i < abi::kConditionBytes / sizeof *words; ++i) {
    if (i != wrefs) words[i] = 0;
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  words[wrefs] = words[wrefs] & (abi::Condition::kShared | abi::Condition::kClock);
}

// Counts the lost waiters in the object's memory, and removes them if the cure is on. Called at the child's first
// operation on the object. The program is about to use the object. So its memory is mapped, and it is still a condition
// variable or barrier.
void examine(LostWait& wait) {
  const auto* memory = reinterpret_cast<const void*>(wait.object);
  memcpy(wait.memory, memory, lock_bytes(wait.kind));
  wait.lost = count_lost(wait.kind, wait.memory);
  Stage stage = Stage::kLost;
  if (wait.lost == 0 || is_in_shared_mapping(memory)) {
    stage = Stage::kGone;
  } else if (are_cured(wait.kind) && is_in_private_mapping(memory)) {
    remake(*condition_layout(), wait.object);  // the layout is known, because waiters are lost
    stage = Stage::kCured;
  }
  wait.stage.store(stage, std::memory_order_release);
}

// Returns the entry of an object that has lost waiters, or had some that the cure removed; null for any other object.
// Examines the object first if needed.
LostWait* find_examined(const volatile void* object, LockKind kind) {
  LostWait* const wait = find(reinterpret_cast<std::uint64_t>(object), kind);
  if (wait == nullptr) return nullptr;
  Stage stage = Stage::kUnseen;
  if (wait->stage.compare_exchange_strong(stage, Stage::kBusy, std::memory_order_acq_rel)) {
    examine(*wait);
    stage = wait->stage.load(std::memory_order_relaxed);
  }
  // The thread that examines the object finishes soon, because it waits for nothing. A child that is forked meanwhile
  // examines the object again. The loop is bounded, because this code may run in a signal handler that has interrupted
  // that thread. The functions of condition variables and barriers are not allowed in signal handlers, but a program
  // may call them there.
  for (int i = 0; stage == Stage::kBusy && i < kMostYields; ++i) {
    sys::yield();
    stage = wait->stage.load(std::memory_order_acquire);
  }
  return stage == Stage::kLost || stage == Stage::kCured ? wait : nullptr;
}

std::uint64_t append_waiter(const LostWait& wait, std::uint64_t thread, std::uint64_t stack) {
  trace::HeldRecord held{
      wait.fork_record, wait.object, thread, stack, wait.kind, static_cast<std::uint32_t>(lock_bytes(wait.kind)), {}};
  memcpy(held.memory, wait.memory, sizeof held.memory);
  return append(trace::RecordType::kHeld, held, Importance::kFinding);
}

// Writes kHeld records of the lost waiters, and returns the first one. The slots of lost threads can be read until new
// threads take them. If no slot can be read, there is only one record, and this record has no stack.
std::uint64_t record_waiters(const LostWait& wait) {
  std::uint64_t first = 0;
  std::uint32_t written = 0;
  for (std::uint32_t i = 0; i < slot_count() && written < kMostWaitersRecorded; ++i) {
    const Slot& slot = slot_at(i);
    if (!is_lost_waiter(slot, wait) || slot.record == 0) continue;
    const std::uint64_t stack = append_stack(slot.wait_site, &slot, kWaiterStackBytes, true, Importance::kFinding);
    const std::uint64_t held = append_waiter(wait, slot.record, stack);
    if (written++ == 0) first = held;
  }
  return written != 0 || wait.thread_record == 0 ? first : append_waiter(wait, wait.thread_record, 0);
}

Touch record_touch(LostWait& wait, trace::TouchKind kind, SyncOperation operation, TouchAction action,
                   std::uint32_t flags, const Site& site) {
  if (wait.held_record == 0) wait.held_record = record_waiters(wait);
  if (wait.held_record == 0) return {0};
  const std::uint64_t stack = append_stack(site, t_slot, kTouchStackBytes, false, Importance::kFinding);
  const trace::TouchRecord touch{wait.fork_record,
                                 kind,
                                 action,
                                 wait.held_record,
                                 0,
                                 wait.object,
                                 stack,
                                 0,
                                 0,
                                 flags,
                                 static_cast<std::uint32_t>(operation)};
  return {append(trace::RecordType::kTouch, touch, Importance::kFinding)};
}

}  // namespace

void begin_watching_sync() { g_sync_is_watched = false; }

void at_fork::LostWaiters::reads(const Fork& fork) {
  const Slot* const forking = &fork.self;
  for (std::uint32_t i = 0; i < g_lost_count; ++i) {
    Stage busy = Stage::kBusy;
    g_lost[i].stage.compare_exchange_strong(busy, Stage::kUnseen, std::memory_order_relaxed);
  }
  const std::uint32_t before = g_not_stored;
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    const Slot& slot = slot_at(i);
    if (&slot == forking || slot.epoch + 1 != epoch()) continue;
    if (slot.state.load(std::memory_order_relaxed) != SlotState::kLive) continue;
    if (slot.wait_kind == trace::WaitKind::kCondition) remember(slot, LockKind::kCondition, forking->fork_record);
    if (slot.wait_kind == trace::WaitKind::kBarrier) remember(slot, LockKind::kBarrier, forking->fork_record);
  }
  if (g_not_stored != before) append_note(trace::NoteCode::kLostWaitsFull, g_not_stored - before);
  if (g_lost_count != 0) g_sync_is_watched = true;
}

Touch touch_condition(const volatile void* object, SyncOperation operation, const Site& site) {
  LostWait* const wait = find_examined(object, LockKind::kCondition);
  if (wait == nullptr) return {0};
  const bool is_cured = wait->stage.load(std::memory_order_relaxed) == Stage::kCured;
  const abi::ConditionLayout& layout = *condition_layout();  // the layout is known, because waiters are lost
  abi::Condition now = abi::load_condition(layout, const_cast<const void*>(object));
  abi::Condition then = abi::load_condition(layout, wait->memory);
  const std::uint64_t lost_position = then.position();
  // If the counters are lower than before, the program has initialised the object again in place.
  if (!is_cured && (now.position() < lost_position || now.waiters() < wait->lost)) {
    wait->stage.store(Stage::kGone, std::memory_order_relaxed);
    return {0};
  }
  const std::uint32_t real = is_cured ? now.waiters() : now.waiters() - wait->lost;
  abi::Condition& at = is_cured ? then : now;
  const ConditionOutcome outcome = predict_outcome(at, operation, lost_position, real, is_cured ? real : 0);
  if (is_cured) abi::store_condition(layout, then, wait->memory);
  if (outcome == ConditionOutcome::kPasses || (outcome == ConditionOutcome::kStolen && wait->was_stolen_from))
    return {0};
  if (outcome == ConditionOutcome::kStolen) wait->was_stolen_from = true;
  TouchAction action = is_cured ? TouchAction::kRecovered : TouchAction::kNone;
  if (!is_cured && outcome == ConditionOutcome::kBlocks && g_config.on_orphan == trace::OrphanPolicy::kAbort)
    action = TouchAction::kAborted;
  const Touch touch = record_touch(*wait, trace::TouchKind::kCondition, operation, action,
                                   outcome == ConditionOutcome::kStolen ? trace::kTouchStolen : 0U, site);
  if (is_cured) wait->stage.store(Stage::kGone, std::memory_order_relaxed);  // only the first touch is recorded
  if (action == TouchAction::kAborted) end_process();
  return touch;
}

Touch touch_barrier(const volatile void* object, SyncOperation operation, const Site& site) {
  LostWait* const wait = find_examined(object, LockKind::kBarrier);
  if (wait == nullptr) return {0};
  const auto now = decode_lock<BarrierMemory>(const_cast<const void*>(object));
  const auto then = decode_lock<BarrierMemory>(wait->memory);
  if (now.in < then.in || now.count != then.count) {
    wait->stage.store(Stage::kGone, std::memory_order_relaxed);
    return {0};
  }
  // The lost threads arrived in one round of the barrier. When this round is complete, only a destroy waits for these
  // threads.
  if (operation == SyncOperation::kWait && (now.round != then.round || then.pending() == 0)) return {0};
  const bool aborts = g_config.on_orphan == trace::OrphanPolicy::kAbort && operation == SyncOperation::kDestroy;
  const Touch touch = record_touch(*wait, trace::TouchKind::kBarrier, operation,
                                   aborts ? TouchAction::kAborted : TouchAction::kNone, 0, site);
  if (aborts) end_process();
  return touch;
}

}  // namespace forksight
