#include "libc/libc_calls.hpp"

#include <string.h>

#include "libc/call_marks.hpp"
#include "loader/next.hpp"
#include "record/thread_records.hpp"
#include "record/writer.hpp"

namespace forksight {

namespace {

enum Takes : bool { kSometimes = false, kAlways = true };

constexpr auto kCallCount = static_cast<std::uint32_t>(LibcCall::kCount);

struct CallEntry {
  const char* name;
  std::uint64_t locks;
  Takes takes;
};

#define FORKSIGHT_LIBC_LOCK(id, name, what) constexpr std::uint64_t id = trace::bit_of(trace::LibcLock::id);
#include "forksight/trace/libc_locks.def"

constexpr CallEntry kCalls[] = {
#define FORKSIGHT_LIBC_HOOK(name, probe, versions, locks, takes, result, parameters, arguments) {#name, locks, takes},
#define FORKSIGHT_VARIADIC_HOOK(name, probe, versions, locks, takes) {#name, locks, takes},
#include "forksight/trace/libc_calls.def"
};
static_assert(sizeof kCalls / sizeof *kCalls == kCallCount);

const CallEntry& entry_of(LibcCall call) { return kCalls[static_cast<std::uint32_t>(call)]; }

// How many touches are recorded for one lost call. A touch that returns may not have needed the lock. So later calls
// are recorded as touches, too.
constexpr std::uint32_t kMaxTouches = 16;
constexpr std::uint32_t kMaxLost = 32;
constexpr std::size_t kStackBytes = 16U << 10U;

constinit std::uint64_t g_call_records[kCallCount] = {};
constinit LostCall g_lost[kMaxLost] = {};
constinit std::uint32_t g_lost_count = 0;
constinit bool g_lost_own = false;
// The union of the locks of all entries in g_lost. Each marked call reads this set.
FORKSIGHT_WRITTEN_AT_FORK constinit std::uint64_t g_lost_locks = 0;

void sum_up() {
  std::uint64_t locks = 0;
  bool own = false;
  for (std::uint32_t i = 0; i < g_lost_count; ++i) {
    locks |= g_lost[i].locks;
    own = own || (g_lost[i].own_index != 0 && g_lost[i].locks != 0);
  }
  g_lost_locks = locks;
  g_lost_own = own;
}

LostCall* find_lost(std::uint64_t locks) {
  LostCall* cured = nullptr;
  for (std::uint32_t i = 0; i < g_lost_count; ++i) {
    LostCall& lost = g_lost[i];
    if ((lost.locks & locks) == 0 || lost.touches >= kMaxTouches) continue;
    if (!lost.cured) return &lost;
    cured = &lost;
  }
  return cured;
}

std::uint64_t touch_call(LibcCall call, const Site& site) {
  LostCall* const lost = find_lost(entry_of(call).locks);
  if (lost == nullptr) return 0;
  ++lost->touches;
  const std::uint64_t stack = append_stack(site, t_slot, kStackBytes, false, Importance::kFinding);
  const trace::TouchRecord touch{lost->fork,
                                 trace::TouchKind::kLibcCall,
                                 trace::TouchAction::kNone,
                                 lost->record,
                                 0,
                                 ensure_call_record(call),
                                 stack,
                                 0,
                                 0,
                                 lost->cured ? trace::kTouchCured : 0U,
                                 0};
  if (lost->cured) {
    lost->locks = 0;
    sum_up();
  }
  return append(trace::RecordType::kTouch, touch, Importance::kFinding);
}

// Forgets that lost threads may hold these locks. Called when a call that always takes these locks has returned: then
// no lost thread holds them.
void disprove(std::uint64_t locks) {
  for (std::uint32_t i = 0; i < g_lost_count; ++i) {
    if (!g_lost[i].cured) g_lost[i].locks &= ~locks;
  }
  sum_up();
}

// Called in a child when the forking thread returns from a libc function inside of which it had forked. The function
// has released its locks, so they no longer count as lost. Only the mutex of the loader stays locked, because it is
// recursive, and records the thread id that its owner had in the parent.
void forget_own(std::uint32_t index) {
  for (std::uint32_t i = 0; i < g_lost_count; ++i) {
    if (g_lost[i].own_index == index + 1) g_lost[i].locks &= kLoader;
  }
  sum_up();
}

void collect_from(Slot& holder, Slot* forking, std::uint64_t fork) {
  const bool is_own = &holder == forking;
  for (std::uint32_t i = 0; i < holder.call_depth && i < kMaxCalls; ++i) {
    const CallInFlight entry = holder.calls[i];
    if (entry.call == 0 || entry.call > kCallCount) continue;
    const auto call = static_cast<LibcCall>(entry.call - 1);
    const std::uint64_t stack = append_stack(entry.site, &holder, kStackBytes, !is_own, Importance::kFact);
    const trace::InFlightRecord record{fork, ensure_thread_record(holder), ensure_call_record(call), stack, 0, 0};
    const std::uint64_t reference = append(trace::RecordType::kInFlight, record);
    remember_lost({reference, fork, entry_of(call).locks, 0, is_own ? i + 1 : 0, false});
  }
}

}  // namespace

constinit void* g_real_calls[kCallCount] = {};

void* resolve_call(LibcCall call) {
  bool stays = false;
  void* const function = reinterpret_cast<void*>(find_next(entry_of(call).name, stays));
  // The function exists, because otherwise the loader could not have bound its caller.
  if (function == nullptr) __builtin_trap();
  if (stays) __atomic_store_n(&g_real_calls[static_cast<std::uint32_t>(call)], function, __ATOMIC_RELAXED);
  return function;
}

std::uint64_t locks_of(LibcCall call) { return entry_of(call).locks; }

std::uint64_t ensure_call_record(LibcCall call) {
  std::uint64_t& reference = g_call_records[static_cast<std::uint32_t>(call)];
  if (reference != 0) return reference;
  trace::LibcCallRecord record{entry_of(call).locks, {}};
  strncpy(record.name, entry_of(call).name, sizeof record.name - 1);
  reference = append(trace::RecordType::kLibcCall, record, Importance::kFinding);
  return reference;
}

void remember_lost(const LostCall& lost) {
  if (g_lost_count == kMaxLost) {
    // Removes entries whose locks are known to be free.
    std::uint32_t kept = 0;
    for (const LostCall& known : g_lost) {
      if (known.locks != 0) g_lost[kept++] = known;
    }
    g_lost_count = kept;
  }
  if (g_lost_count == kMaxLost) return;
  g_lost[g_lost_count++] = lost;
  g_lost_locks |= lost.locks;
  g_lost_own = g_lost_own || lost.own_index != 0;
}

CallMark enter_call(LibcCall call, Frame frame) {
  initialise();
  Slot* const slot = own_slot();
  if (slot == nullptr) return {nullptr, 0, call, 0};
  const std::uint32_t index = push_call(*slot, call, frame);
  // A thread that is inside of another such call (index > 0) must not wait, because the fork waits for that call.
  if (FORKSIGHT_UNLIKELY(gate_is_closed()) && index == 0 && !slot->holds_gate) wait_at_gate(*slot, call, frame);
  CallMark mark{slot, index, call, 0};
  if (FORKSIGHT_UNLIKELY((g_lost_locks & entry_of(call).locks) != 0)) mark.touch = touch_call(call, frame.site());
  return mark;
}

void leave_call(const CallMark& mark) {
  if (mark.slot == nullptr) return;
  drop_calls(*mark.slot, mark.index);
  if (FORKSIGHT_LIKELY(g_lost_locks == 0 && mark.touch == 0)) return;
  if (g_lost_own) forget_own(mark.index);
  if (mark.touch == 0) return;
  append(trace::RecordType::kTouchEnd, trace::TouchEndRecord{mark.touch, 0, 0}, Importance::kFinding);
  if (entry_of(mark.call).takes == kAlways) disprove(entry_of(mark.call).locks);
}

// Collects the calls that were in flight at the fork.
void at_fork::LibcCalls::reads(const Fork& fork_now) {
  Slot* const forking = &fork_now.self;
  const std::uint64_t fork = fork_now.record;
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    Slot& slot = slot_at(i);
    if (slot.call_depth == 0) continue;
    const SlotState state = slot.state.load(std::memory_order_relaxed);
    if (state != SlotState::kLive && state != SlotState::kEnded) continue;
    if (&slot == forking || slot.epoch + 1 == epoch()) collect_from(slot, forking, fork);
  }
  take_gate_waits_in_child(forking);
}

}  // namespace forksight

#include "guest/house_rules.hpp"
