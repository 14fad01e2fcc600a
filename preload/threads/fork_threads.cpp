#include "threads/fork_threads.hpp"

#include <algorithm>

#include "forksight/trace/handlers.hpp"
#include "guest/config.hpp"
#include "guest/confinement.hpp"
#include "guest/memory.hpp"
#include "guest/sys.hpp"
#include "guest/tasks.hpp"
#include "loader/next.hpp"
#include "locks/held.hpp"
#include "record/thread_records.hpp"
#include "record/writer.hpp"
#include "threads/ended.hpp"
#include "threads/ended_holders.hpp"
#include "threads/unending_waits.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constinit std::uint32_t g_noted_threads = 0;
constinit std::uint32_t g_noted_refused = 0;

bool is_other_thread(const Slot& slot, const Slot* self) {
  return &slot != self && slot.epoch == epoch() && slot.state.load(std::memory_order_acquire) == SlotState::kLive;
}

// Reads the set of signals that a thread waits for. The set may be on the stack of that thread. If the thread returns
// from the call meanwhile, the memory may contain something else, so the state of the wait is checked after the copy.
// Not inlined, so that the frame of the caller stays small.
__attribute__((noinline)) std::uint64_t read_signals(const Slot& slot) {
  const auto* const set = reinterpret_cast<const void*>(slot.wait_object);
  std::uint64_t signals = 0;
  if (read_memory(set, &signals, sizeof signals) != sizeof signals) return 0;
  compiler_fence();
  return slot.wait_kind == trace::WaitKind::kSignals ? signals : 0;
}

// Returns what the thread waits for: for a join the tid of the awaited thread, for signals the set of signals, for
// another wait the address of the object.
std::uint64_t awaited_object(const Slot& slot) {
  if (slot.wait_kind == trace::WaitKind::kNone) return 0;
  if (slot.wait_kind == trace::WaitKind::kSignals) return read_signals(slot);
  if (slot.wait_kind != trace::WaitKind::kJoin) return slot.wait_object;
  const Slot* const awaited = find_slot_by_thread_pointer(slot.wait_object);
  return awaited == nullptr ? 0 : static_cast<std::uint64_t>(awaited->tid);
}

// Returns the number of threads according to the kernel; 0: the kernel was not asked. The question takes 4 us. So the
// kernel is asked at each of the first kForksCountedEach forks of the trace. Later, the kernel is asked only at each
// fork whose number is a multiple of kForksCountedEach. If the initial thread has ended, the kernel counts it until all
// other threads have ended, so this function subtracts it.
std::uint32_t count_tasks_now_and_then() {
  constexpr std::uint64_t kForksCountedEach = 16;
  const std::uint64_t forks = forks_so_far();
  if (forks >= kForksCountedEach && forks % kForksCountedEach != 0) return 0;
  const std::uint32_t tasks = count_tasks();
  return tasks > 1 && initial_thread_has_ended() ? tasks - 1 : tasks;
}

// True if the thread that had this slot at the beginning of fork() has ended. If another thread has the slot now, the
// answer is false, because nothing is known about the earlier thread.
bool has_gone(const Slot* self, std::uint32_t index) {
  const bool lived = (self->lived_at_entry[index / 64] >> index % 64 & 1U) != 0;
  const Slot& slot = slot_at(index);
  return lived && slot.epoch == epoch() && slot.state.load(std::memory_order_acquire) == SlotState::kEnded;
}

}  // namespace

bool fork_is_watched() {
  if (g_had_threads.load(std::memory_order_relaxed)) return true;
  // Threads may have been made without the hook: by libc, or by a sanitizer's pthread_create if the program uses that.
  // Before glibc 2.32 only the kernel knows about such threads.
  if (g_libc_single_threaded != nullptr ? *g_libc_single_threaded == 0 : count_tasks() > 1) {
    g_had_threads.store(true, std::memory_order_relaxed);
    return true;
  }
  // This process has only one thread. The thread may hold a lock that records its owner. The child cannot unlock such a
  // lock. --cure=self-held lets the child unlock it, but acts only at a fork that is recorded. Without this cure, such
  // a lock is no reason to record the fork.
  return cures(trace::Cure::kSelfHeld) && t_slot != nullptr && depth(*t_slot) != 0;
}

std::uint32_t count_other_threads(const Slot* self) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < slot_count(); ++i) count += is_other_thread(slot_at(i), self) ? 1U : 0U;
  return count;
}

std::uint32_t fill_threads(trace::ForkThread* out, std::uint32_t room, const Slot* self) {
  std::uint32_t filled = 0;
  for (std::uint32_t i = 0; i < slot_count() && filled < room; ++i) {
    Slot& slot = slot_at(i);
    if (!is_other_thread(slot, self)) continue;
    out[filled++] = {slot.record, awaited_object(slot), slot.wait_kind, depth(slot)};
  }
  return filled;
}

bool at_fork::Threads::tells() { return fork_is_watched(); }

// Notes which threads live now. A thread that ends during the other libraries' prepare handlers is not lost.
void at_fork::Threads::enters(const Fork& fork) {
  // In a fork of the kind kInLibc, the shim calls this only after the other libraries' prepare handlers. So this
  // function could not tell which threads lived before these handlers.
  if (fork.kind != ForkKind::kWrapper) return;
  Slot* const self = &fork.self;
  end_slots_of_gone_threads(self, false);
  self->lived_count = std::min(slot_count(), kFirstSlots);
  for (std::uint32_t i = 0; i < self->lived_count; i += 64) {
    std::uint64_t word = 0;
    for (std::uint32_t bit = 0; bit < 64 && i + bit < self->lived_count; ++bit) {
      if (is_other_thread(slot_at(i + bit), self)) word |= std::uint64_t{1} << bit;
    }
    self->lived_at_entry[i / 64] = word;
  }
}

void at_fork::Threads::prepares(Fork& fork) {
  Slot* const self = &fork.self;
  ensure_thread_record(*self);
  fork.tasks = count_tasks_now_and_then();
  end_slots_of_gone_threads(self, fork.tasks != 0 && fork.tasks != count_other_threads(self) + 1);
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    Slot& slot = slot_at(i);
    if (is_other_thread(slot, self)) ensure_thread_record(slot);
    check_for_ended_holder(slot);
  }
  if (g_lost_threads_unrecorded != g_noted_threads) {
    g_noted_threads = g_lost_threads_unrecorded;
    append_note(trace::NoteCode::kThreadTableFull, g_noted_threads);
  }
  if (g_confinement != Confinement::kNone && count_refused() != g_noted_refused) {
    g_noted_refused = count_refused();
    append_note(trace::NoteCode::kConfined, g_noted_refused);
  }
}

void at_fork::Threads::records(const Fork& fork) {
  if (fork.kind != ForkKind::kWrapper) return;
  Slot* const self = &fork.self;
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < self->lived_count; ++i) count += has_gone(self, i) ? 1U : 0U;
  if (count == 0) return;
  for (std::uint32_t i = 0; i < self->lived_count; ++i) {
    if (has_gone(self, i)) ensure_thread_record(slot_at(i));
  }
  Record record(trace::RecordType::kGone, sizeof(trace::GoneRecord) + count * sizeof(std::uint64_t));
  if (!record) return;
  auto* const references = reinterpret_cast<std::uint64_t*>(record.payload() + sizeof(trace::GoneRecord));
  std::uint32_t filled = 0;
  for (std::uint32_t i = 0; i < self->lived_count && filled < count; ++i) {
    if (has_gone(self, i)) references[filled++] = slot_at(i).record;
  }
  *record.as<trace::GoneRecord>() = {fork.record, filled, 0};
  record.commit();
}

void at_fork::Threads::reads(const Fork& fork) { note_lost_threads(fork.record); }

}  // namespace forksight
