// --cure=quiesce-libc: before a process forks, the shim closes a gate. While the gate is closed, other threads begin no
// new calls of libc functions whose locks the child could inherit in their locked state. Then the forking thread waits,
// for a bounded time, until no other thread is inside of such a function. The gate opens again after the fork, in both
// processes.
//   This cure cannot cause a deadlock, because the fork and the threads at the gate wait only for a bounded time. A
//   thread that is already inside of such a function passes the gate. If a call has not ended while a fork waited for
//   it, later forks do not wait for this call.
//   No call is overlooked. A thread first marks its call, and then reads the state of the gate. The fork first closes
//   the gate, and then reads the marks. Between these two steps of the fork, a membarrier makes every running thread
//   execute a full fence, so the hooks need no fence.
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <time.h>

#include "guest/clock.hpp"
#include "guest/config.hpp"
#include "guest/sys.hpp"
#include "libc/call_marks.hpp"
#include "libc/libc_calls.hpp"
#include "record/thread_records.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint64_t kFirstPauseNs = 20'000;
constexpr std::uint64_t kLongestPauseNs = 1'000'000;
constexpr std::uint32_t kMaxWaited = 16;
constexpr std::size_t kStackBytes = 16U << 10U;

// The number of forks that keep the gate closed. Threads at the gate sleep on this word.
constinit std::atomic<std::uint32_t> g_gate{0};
constinit bool g_has_membarrier = false;

// A call that the latest fork waited for.
struct Waited {
  Slot* slot;
  std::uint32_t serial;
  LibcCall call;
  std::uint64_t stack;   // ref to kStack
  std::uint64_t record;  // ref to kInFlight; 0: the call did not end
};
constinit Waited g_waited[kMaxWaited] = {};
constinit std::uint32_t g_waited_count = 0;

std::uint64_t longest_wait_ns() { return g_config.cures.value(trace::Cure::kQuiesceLibc) * kNsPerMs; }

timespec to_timespec(std::uint64_t ns) {
  return {static_cast<time_t>(ns / kNsPerSecond), static_cast<long>(ns % kNsPerSecond)};
}

void pause_for(std::uint64_t ns) {
  const timespec time = to_timespec(ns);
  sys::call(SYS_nanosleep, sys::word(&time), 0);
}

bool is_other_thread(const Slot& slot, const Slot* self) {
  return &slot != self && slot.epoch == epoch() && slot.state.load(std::memory_order_acquire) == SlotState::kLive;
}

bool is_waited_for(const Slot& slot, const Slot* self) {
  if (!is_other_thread(slot, self)) return false;
  const auto* const depth = &slot.call_depth;
  return __atomic_load_n(depth, __ATOMIC_ACQUIRE) != 0 && slot.call_serial != slot.call_outlasted &&
         __atomic_load_n(&slot.calls[0].call, __ATOMIC_ACQUIRE) != 0;
}

bool is_still_inside(const Waited& waited) {
  return waited.slot->call_depth != 0 && waited.slot->call_serial == waited.serial;
}

// Notes a call that the fork waits for, with a copy of its stack. The thread is running, so the copy is used only if
// the call was in flight before and after the copy.
void note_waited(Slot& slot) {
  if (g_waited_count == kMaxWaited) return;
  const CallInFlight entry = slot.calls[0];
  if (entry.call == 0) return;
  Waited waited{&slot, slot.call_serial, static_cast<LibcCall>(entry.call - 1), 0, 0};
  waited.stack = append_stack(entry.site, &slot, kStackBytes, false, Importance::kFact);
  if (!is_still_inside(waited)) waited.stack = 0;
  g_waited[g_waited_count++] = waited;
}

// Waits until no other thread is inside of a marked call, or until the deadline. Returns how many threads are still
// inside.
std::uint32_t wait_for_others(const Slot* forking, std::uint64_t deadline_ns) {
  std::uint64_t pause_ns = kFirstPauseNs;
  for (;;) {
    std::uint32_t inside = 0;
    for (std::uint32_t i = 0; i < slot_count(); ++i) inside += is_waited_for(slot_at(i), forking) ? 1U : 0U;
    if (inside == 0 || now_ns() >= deadline_ns) return inside;
    pause_for(pause_ns);
    if (pause_ns < kLongestPauseNs) pause_ns *= 2;
  }
}

void record_waited(Slot* forking, std::uint64_t waited_ns, std::uint32_t waited_for, std::uint32_t left) {
  if (forking->fork_record == 0) return;
  append(trace::RecordType::kQuiesced, trace::QuiescedRecord{forking->fork_record, waited_ns, waited_for, left});
  for (std::uint32_t i = 0; i < g_waited_count; ++i) {
    Waited& waited = g_waited[i];
    if (is_still_inside(waited)) continue;
    waited.record =
        append(trace::RecordType::kInFlight,
               trace::InFlightRecord{forking->fork_record, ensure_thread_record(*waited.slot),
                                     ensure_call_record(waited.call), waited.stack, trace::kInFlightEnded, 0});
  }
}

}  // namespace

void start_quiescing() {
  if (!cures(trace::Cure::kQuiesceLibc)) return;
  g_has_membarrier = sys::call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool gate_is_closed() { return g_gate.load(std::memory_order_relaxed) != 0; }

void wait_at_gate(Slot& slot, LibcCall call, Frame frame) {
  // A thread waits here at most twice as long as a fork waits for calls. A fork that gave up waiting is over by then.
  const std::uint64_t deadline_ns = now_ns() + 2 * longest_wait_ns();
  for (;;) {
    const std::uint32_t closed = g_gate.load(std::memory_order_acquire);
    const std::uint64_t now = now_ns();
    if (closed == 0 || now >= deadline_ns) return;
    drop_calls(slot, 0);
    const timespec left = to_timespec(deadline_ns - now);
    sys::call(SYS_futex, sys::word(&g_gate), FUTEX_WAIT_PRIVATE, closed, sys::word(&left));
    push_call(slot, call, frame);
  }
}

// Closes the gate, and waits until no other thread is inside of a marked call. This is the last step of the shim before
// the fork.
void at_fork::LibcCalls::records(const Fork& fork) {
  Slot* const forking = &fork.self;
  if (!cures(trace::Cure::kQuiesceLibc)) return;
  const std::uint64_t start_ns = now_ns();
  if (!forking->holds_gate) {
    forking->holds_gate = true;
    g_gate.fetch_add(1, std::memory_order_seq_cst);
  }
  // If the kernel refuses the membarrier, a pause replaces it: no store stays in a processor's store buffer as long as
  // this pause.
  if (!g_has_membarrier || sys::call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
    pause_for(kFirstPauseNs);
  }
  g_waited_count = 0;
  std::uint32_t waited_for = 0;
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    if (!is_waited_for(slot_at(i), forking)) continue;
    ++waited_for;
    note_waited(slot_at(i));
  }
  if (waited_for == 0) return;
  const std::uint32_t left = wait_for_others(forking, start_ns + longest_wait_ns());
  for (std::uint32_t i = 0; left != 0 && i < slot_count(); ++i) {
    Slot& slot = slot_at(i);
    if (is_waited_for(slot, forking)) slot.call_outlasted = slot.call_serial;
  }
  record_waited(forking, now_ns() - start_ns, waited_for, left);
}

void at_fork::LibcCalls::continues(const Fork& fork) {
  Slot* const forking = &fork.self;
  if (!forking->holds_gate) return;
  forking->holds_gate = false;
  g_gate.fetch_sub(1, std::memory_order_release);
  sys::call(SYS_futex, sys::word(&g_gate), FUTEX_WAKE_PRIVATE, INT32_MAX);
}

// Opens the gate in the child, whichever threads of the parent had closed it.
void at_fork::LibcCalls::starts_any(std::uint64_t) {
  if (g_gate.load(std::memory_order_relaxed) != 0) g_gate.store(0, std::memory_order_relaxed);
}

void take_gate_waits_in_child(Slot* forking) {
  if (!forking->holds_gate) return;
  forking->holds_gate = false;
  for (std::uint32_t i = 0; i < g_waited_count; ++i) {
    const Waited& waited = g_waited[i];
    if (waited.record != 0) {
      remember_lost({waited.record, forking->fork_record, locks_of(waited.call), 0, 0, true});
    }
  }
  g_waited_count = 0;
}

}  // namespace forksight
