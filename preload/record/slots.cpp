#include "record/slots.hpp"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "guest/clock.hpp"
#include "guest/sys.hpp"
#include "guest/vfork_mark.hpp"
#include "record/own_ids.hpp"
#include "record/thread_events.hpp"

#include "guest/house_rules.hpp"

// The end of the initial thread's stack. The dynamic loader stores it (GLIBC_2.2.5).
extern "C" void* __libc_stack_end;

namespace forksight {

thread_local constinit Slot* t_slot = nullptr;
thread_local constinit Slot* t_fast = nullptr;
thread_local constinit bool t_fork_is_told = false;
constinit std::atomic<bool> g_had_threads{false};
constinit std::uint32_t g_lost_threads_unrecorded = 0;
FORKSIGHT_WRITTEN_AT_FORK constinit std::uint32_t g_slow_locks = 0;
FORKSIGHT_WRITTEN_AT_FORK constinit std::uint32_t g_epoch = 0;

namespace {

alignas(4096) constinit Slot g_first_slots[kChunkSlots] = {};
constinit std::atomic<Slot*> g_chunks[kMaxSlots / kChunkSlots] = {};
// True if the table was full when this thread needed a slot: the thread is not recorded, and does not search again at
// every lock.
constinit thread_local bool t_refused = false;
constinit std::atomic<std::uint32_t> g_used{0};
constinit std::atomic<std::uint32_t> g_hint{0};
// True if a search found no free slot and no thread has ended since. Another search would ask the kernel about every
// thread in vain.
constinit std::atomic<bool> g_exhausted{false};

bool claim(Slot& slot, SlotState from) {
  return slot.state.compare_exchange_strong(from, SlotState::kReserved, std::memory_order_acq_rel);
}

// Claims a slot whose thread does not exist in this process: the kernel confirms that the thread has ended, or the slot
// belongs to a thread of the parent. The slot of a thread that ended with locks held is kept until the table is full,
// because only the slot shows who holds the locks. `any_state`: the table is full. `budget`: how often the kernel may
// still be asked about a thread whose end no hook sees.
bool claim_dead(Slot& slot, std::int32_t pid, bool any_state, std::uint32_t& budget) {
  const SlotState state = slot.state.load(std::memory_order_acquire);
  if (state == SlotState::kFree || state == SlotState::kReserved) return false;
  const bool ours = slot.epoch == epoch();
  if (!ours) return claim(slot, state);
  const bool is_doubtful = state == SlotState::kLive && (slot.flags & trace::kThreadForeign) != 0 && budget != 0;
  if (is_doubtful) --budget;
  if (!any_state && !is_doubtful && (state != SlotState::kEnded || (slot.flags & trace::kThreadEnded) != 0)) {
    return false;
  }
  if (sys::thread_exists(pid, slot.tid) || !claim(slot, state)) return false;
  if (any_state || !slot_is_needed(slot)) return true;
  slot.state.store(SlotState::kEnded, std::memory_order_release);
  return false;
}

// Counts a thread that gets no slot. Returns null.
Slot* count_unrecorded() {
  __atomic_fetch_add(&g_lost_threads_unrecorded, 1, __ATOMIC_RELAXED);
  return nullptr;
}

// Maps this chunk of slots if it is not mapped yet. False: there is no memory for more threads.
bool map_chunk(std::uint32_t chunk) {
  if (g_chunks[chunk].load(std::memory_order_acquire) != nullptr) return true;
  void* const memory =
      sys::map(sizeof g_first_slots, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (memory == nullptr) return false;
  // A huge page would take 2 MiB in every process, and the kernel would copy it after a fork.
  sys::call(SYS_madvise, sys::word(memory), sizeof g_first_slots, MADV_NOHUGEPAGE);
  Slot* none = nullptr;
  if (!g_chunks[chunk].compare_exchange_strong(none, static_cast<Slot*>(memory), std::memory_order_acq_rel)) {
    sys::unmap(memory, sizeof g_first_slots);
  }
  return true;
}

void reset(Slot& slot, std::uint32_t index) {
  slot.index = index;
  slot.top = &slot.held[1];
  slot.overflow = 0;
  slot.epoch = epoch();
  slot.tid = 0;
  slot.lock_tid = 0;
  slot.creator_tid = 0;
  slot.wait_object = 0;
  slot.taking = 0;
  slot.wait_kind = trace::WaitKind::kNone;
  slot.wait_site = {};
  slot.flags = 0;
  slot.thread_pointer = 0;
  slot.stack_top = 0;
  slot.is_initial_stack = false;
  slot.is_retired = false;
  slot.start_routine = 0;
  slot.argument = 0;
  slot.created_ns = 0;
  memset(slot.name, 0, sizeof slot.name);
  slot.record = 0;
  slot.fork_record = 0;
  slot.open_touch = 0;
  slot.fork_kind = ForkKind::kWrapper;
  slot.fork_entry_ns = 0;
  slot.fork_site = {};
  slot.last_fork_site = {};
  slot.last_fork_stack = 0;
  slot.handler_run = 0;
  slot.untimed_run = 0;
  slot.handler_depth = 0;
  slot.life = 0;
  slot.moment = 0;
  slot.life_record = 0;
  slot.lived_count = 0;
  slot.creation_site = {};
  slot.creation_bytes = 0;
  slot.creation_cut = 0;
  slot.call_depth = 0;
  slot.call_serial = 0;
  slot.call_outlasted = 0;
  slot.is_closing_holes = false;
  slot.moving_from = nullptr;
  slot.moving_to = nullptr;
  slot.holds_gate = false;
}

}  // namespace

void start_slots() {
  g_chunks[0].store(g_first_slots, std::memory_order_relaxed);
  g_epoch = 1;
}

void begin_next_epoch() {
  if (g_epoch != 0) ++g_epoch;
  note_child_pid();
}

std::uint32_t slot_count() { return g_used.load(std::memory_order_acquire); }

Slot& slot_at(std::uint32_t index) {
  return g_chunks[index / kChunkSlots].load(std::memory_order_acquire)[index % kChunkSlots];
}

Slot* reserve_slot() {
  if (epoch() == 0) return nullptr;
  const std::uint32_t used = slot_count();
  const std::int32_t pid = sys::getpid();
  // First looks for a slot that can be reused, so that the table does not become much larger than the number of
  // threads. The search looks at up to 64 slots, and begins at the slot that was reused last.
  const std::uint32_t hint = g_hint.load(std::memory_order_relaxed);
  std::uint32_t budget = 2;
  for (std::uint32_t step = 0; step < used && step < 64; ++step) {
    const std::uint32_t index = (hint + step) % used;
    Slot& slot = slot_at(index);
    const SlotState state = slot.state.load(std::memory_order_acquire);
    if ((state == SlotState::kFree && claim(slot, state)) || claim_dead(slot, pid, false, budget)) {
      g_hint.store(index, std::memory_order_relaxed);
      reset(slot, index);
      return &slot;
    }
  }
  std::uint32_t next = used;
  while (next < kMaxSlots && map_chunk(next / kChunkSlots)) {
    // After this thread has raised g_used, and before it claims the new slot, another thread may take the slot in the
    // loop above. Then this thread tries the next slot.
    if (g_used.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel) &&
        claim(slot_at(next), SlotState::kFree)) {
      reset(slot_at(next), next);
      return &slot_at(next);
    }
  }
  if (g_exhausted.load(std::memory_order_relaxed)) return count_unrecorded();
  for (std::uint32_t index = 0; index < slot_count(); ++index) {
    Slot& slot = slot_at(index);
    const SlotState state = slot.state.load(std::memory_order_acquire);
    if ((state == SlotState::kFree && claim(slot, state)) || claim_dead(slot, pid, true, budget)) {
      reset(slot, index);
      return &slot;
    }
  }
  g_exhausted.store(true, std::memory_order_relaxed);
  return count_unrecorded();
}

void end_slot(Slot* slot) {
  slot->state.store(SlotState::kEnded, std::memory_order_release);
  // The value is stored only if it changes, because all threads share the cache line.
  if (g_exhausted.load(std::memory_order_relaxed)) g_exhausted.store(false, std::memory_order_relaxed);
}

void release_slot(Slot* slot) { slot->state.store(SlotState::kFree, std::memory_order_release); }

Slot* own_slot() {
  if (FORKSIGHT_LIKELY(t_slot != nullptr)) return t_slot;
  // A child of vfork() gets no slot: the slot, with the child's tid, would stay in its parent's memory.
  if (t_refused || epoch() == 0 || is_vfork_child()) return nullptr;
  Slot* slot = reserve_slot();
  if (slot == nullptr) {
    t_refused = true;
    return nullptr;
  }
  slot->tid = sys::gettid();
  slot->lock_tid = lock_tid();
  slot->created_ns = now_ns();
  slot->thread_pointer = reinterpret_cast<std::uint64_t>(__builtin_thread_pointer());
  if (slot->tid == sys::getpid()) {
    slot->flags = trace::kThreadMain;
    slot->stack_top = reinterpret_cast<std::uint64_t>(__libc_stack_end);
    slot->is_initial_stack = true;
  } else {
    slot->flags = trace::kThreadForeign;
    g_had_threads.store(true, std::memory_order_relaxed);
    foreign_thread_noticed();
  }
  sys::call(SYS_prctl, PR_GET_NAME, sys::word(slot->name));
  slot->state.store(SlotState::kLive, std::memory_order_release);
  t_slot = slot;
  t_fast = fast_slot(slot);
  return slot;
}

Slot* find_slot_by_lock_tid(std::int32_t lock_tid, bool of_this_process) {
  const std::uint32_t used = slot_count();
  for (std::uint32_t index = 0; index < used; ++index) {
    Slot& slot = slot_at(index);
    const SlotState state = slot.state.load(std::memory_order_acquire);
    if (state != SlotState::kLive && state != SlotState::kEnded) continue;
    if (slot.lock_tid == lock_tid && (slot.epoch == epoch()) == of_this_process) return &slot;
  }
  return nullptr;
}

Slot* find_slot_by_thread_pointer(std::uint64_t thread_pointer) {
  const std::uint32_t used = slot_count();
  for (std::uint32_t index = 0; index < used; ++index) {
    Slot& slot = slot_at(index);
    const SlotState state = slot.state.load(std::memory_order_acquire);
    if ((state == SlotState::kLive || state == SlotState::kReserved) && slot.epoch == epoch() &&
        slot.thread_pointer == thread_pointer) {
      return &slot;
    }
  }
  return nullptr;
}

StackBound stack_bound(const Slot* slot, std::uint64_t sp, std::size_t limit) {
  constexpr std::uint64_t kPage = 4096;
  constexpr std::uint64_t kLargestStack = std::uint64_t{1} << 30U;
  // x86-64 Linux keeps at least 128 MiB between the top of the initial stack and the next mapping (MIN_GAP in
  // arch/x86/mm/mmap.c). So an address this close below the top is in that stack, and everything above it is, too.
  constexpr std::uint64_t kSurelyInitialStack = std::uint64_t{64} << 20U;
  // On an alternate signal stack, or on a coroutine's stack, sp is above stack_top, or far below it.
  const bool known = slot != nullptr && slot->stack_top > sp && slot->stack_top - sp < kLargestStack;
  const std::uint64_t bytes = known ? slot->stack_top - sp : kPage - sp % kPage;
  const bool mapped = known && slot->is_initial_stack && bytes < kSurelyInitialStack;
  return {bytes < limit ? static_cast<std::size_t>(bytes) : limit, !known || bytes > limit, mapped};
}

}  // namespace forksight
