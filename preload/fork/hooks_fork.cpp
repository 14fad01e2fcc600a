// fork and the shim's own handlers.
//
// The shim registers its handlers before the first of anybody else's (the hook of __register_atfork initialises it
// first). glibc runs prepare handlers last-in-first-out and child handlers first-in-first-out, so ours run closest to
// the fork on both sides: prepare sees what the other libraries' handlers made of their pools and locks, and the child
// is watched before any of their handlers can touch what was lost.
//
// Processes that never had a second thread pass through with two loads and a branch.
#include <errno.h>
#include <unistd.h>

#include "cuda/cuda.hpp"
#include "files/file_locks.hpp"
#include "files/shares.hpp"
#include "foresight/foresight.hpp"
#include "fork/atfork_list.hpp"
#include "fork/atfork_run.hpp"
#include "fork/fork_turn.hpp"
#include "fork/hooks_fork.hpp"
#include "forksight/trace/handlers.hpp"
#include "guest/clock.hpp"
#include "guest/config.hpp"
#include "guest/kept_errno.hpp"
#include "guest/site.hpp"
#include "guest/sys.hpp"
#include "guest/tasks.hpp"
#include "libc/draws.hpp"
#include "libc/libc_calls.hpp"
#include "libc/streams.hpp"
#include "libc/unflushed.hpp"
#include "loader/modules.hpp"
#include "loader/next.hpp"
#include "locks/held.hpp"
#include "locks/lost_waiters.hpp"
#include "locks/orphans.hpp"
#include "mpi/mpi.hpp"
#include "openmp/omp_policy.hpp"
#include "python/python.hpp"
#include "record/fork_stack.hpp"
#include "record/slots.hpp"
#include "record/thread_records.hpp"
#include "record/writer.hpp"
#include "signals/timers.hpp"
#include "threads/abandoned.hpp"
#include "threads/lost_waits.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

// Asking /proc for the number of threads costs 4 us: the first forks do, then one in so many.
constexpr std::uint64_t kForksCountedEach = 16;

constinit std::uint32_t g_noted_threads = 0;

bool is_other_thread(const Slot& slot, const Slot* self) {
  return &slot != self && slot.epoch == epoch() && slot.state.load(std::memory_order_acquire) == SlotState::kLive;
}

std::uint32_t count_other_threads(const Slot* self) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < slot_count(); ++i) count += is_other_thread(slot_at(i), self) ? 1U : 0U;
  return count;
}

// The set lies on the stack of a thread that may be on its way out of the call: then it is not the set any more. Out of
// line, as append_fork.
__attribute__((noinline)) std::uint64_t read_signals(const Slot& slot) {
  const auto* const set = reinterpret_cast<const void*>(slot.wait_object);
  std::uint64_t signals = 0;
  if (sys::read_memory(set, &signals, sizeof signals) != sizeof signals) return 0;
  compiler_fence();
  return slot.wait_kind == trace::WaitKind::kSignals ? signals : 0;
}

// Of a join, the tid of the thread that is waited for; of signals, their set.
std::uint64_t awaited_object(const Slot& slot) {
  if (slot.wait_kind == trace::WaitKind::kNone) return 0;
  if (slot.wait_kind == trace::WaitKind::kSignals) return read_signals(slot);
  if (slot.wait_kind != trace::WaitKind::kJoin) return slot.wait_object;
  const Slot* const awaited = find_slot_by_thread_pointer(slot.wait_object);
  return awaited == nullptr ? 0 : static_cast<std::uint64_t>(awaited->tid);
}

// Returns how many were filled in: a thread may have come or gone since they were counted.
std::uint32_t fill_threads(trace::ForkThread* out, std::uint32_t room, const Slot* self) {
  std::uint32_t filled = 0;
  for (std::uint32_t i = 0; i < slot_count() && filled < room; ++i) {
    Slot& slot = slot_at(i);
    if (!is_other_thread(slot, self)) continue;
    out[filled++] = {slot.record, awaited_object(slot), slot.wait_kind, depth(slot)};
  }
  return filled;
}

void record_threads(Slot* self) {
  ensure_thread_record(*self);
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    Slot& slot = slot_at(i);
    if (is_other_thread(slot, self)) ensure_thread_record(slot);
    look_for_abandoned(slot);
  }
  if (g_lost_threads_unrecorded != g_noted_threads) {
    g_noted_threads = g_lost_threads_unrecorded;
    append_note(trace::NoteCode::kThreadTableFull, g_noted_threads);
  }
}

// Out of line: its frame is a big one, and what record_fork calls first goes deep.
__attribute__((noinline)) std::uint64_t append_fork(Slot* self, std::uint32_t runtimes, std::uint32_t flags,
                                                    std::uint64_t stack, std::uint64_t handlers) {
  const std::uint64_t ordinal = next_fork_ordinal();
  const std::uint32_t threads = count_other_threads(self);
  Record record(trace::RecordType::kFork,
                sizeof(trace::ForkRecord) + threads * sizeof(trace::ForkThread) + runtimes * sizeof(std::uint64_t));
  if (!record) return 0;
  auto* const tail = reinterpret_cast<trace::ForkThread*>(record.payload() + sizeof(trace::ForkRecord));
  const std::uint32_t filled = fill_threads(tail, threads, self);
  auto* references = reinterpret_cast<std::uint64_t*>(tail + filled);
  for (const RuntimeAtFork& runtime : self->runtimes) {
    if (runtime.record != 0) *references++ = runtime.record;
  }
  *record.as<trace::ForkRecord>() = {
      ordinal,
      stack,
      self->record,
      handlers,
      flags,
      filled,
      runtimes,
      ordinal < kForksCountedEach || ordinal % kForksCountedEach == 0 ? count_tasks() : 0,
      flags != 0 ? now_ns() - self->fork_entry_ns : 0};
  return record.commit();
}

std::uint64_t record_fork(Slot* self, std::uint32_t runtimes, const Site& site, std::uint32_t flags) {
  const std::uint64_t stack = record_fork_stack(*self, site);
  return append_fork(self, runtimes, flags, stack, ensure_handlers_record());
}

// Which threads live now: those that the other libraries' prepare handlers end are no loss.
void mark_living(Slot* self) {
  self->lived_count = slot_count();
  for (std::uint32_t i = 0; i < self->lived_count; i += 64) {
    std::uint64_t word = 0;
    for (std::uint32_t bit = 0; bit < 64 && i + bit < self->lived_count; ++bit) {
      if (is_other_thread(slot_at(i + bit), self)) word |= std::uint64_t{1} << bit;
    }
    self->lived_at_entry[i / 64] = word;
  }
}

// A slot that was taken again since says nothing of the thread that had it.
bool has_gone(const Slot* self, std::uint32_t index) {
  const bool lived = (self->lived_at_entry[index / 64] >> index % 64 & 1U) != 0;
  const Slot& slot = slot_at(index);
  return lived && slot.epoch == epoch() && slot.state.load(std::memory_order_acquire) == SlotState::kEnded;
}

void record_gone(Slot* self) {
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
  *record.as<trace::GoneRecord>() = {self->fork_record, filled, 0};
  record.commit();
}

// Runtimes and drivers are asked: foreign code, here, in on_prepare and in on_child.
void enter_fork(Slot* self, const Site& site) {
  const KeptErrno kept;
  self->fork_site = site;
  self->fork_record = 0;
  self->fork_entry_ns = now_ns();
  self->held_at_entry = depth(*self);
  count_pools(self);
  ask_cuda(*self, site);
  ask_mpi();
  mark_living(self);
}

// A process with one thread has no threads to lose, but may have output that both sides will write, files that both
// sides will use, timers, or locks of files.
bool fork_is_told() {
  return fork_is_watched() || has_unflushed() || has_shares() || has_armed_timers() || has_file_locks();
}
bool is_told_to_child() {
  return fork_is_watched() || unflushed_is_recorded() || shares_are_recorded() || timers_are_recorded() ||
         file_locks_are_recorded();
}

}  // namespace

bool fork_is_watched() {
  if (g_had_threads.load(std::memory_order_relaxed)) return true;
  // The one thread of a process can lose its own locks, too; without the cure that is not worth a file.
  return cures(trace::Cure::kSelfHeld) && t_slot != nullptr && depth(*t_slot) != 0;
}

void on_prepare() {
  count_fork_of_draws();
  if (!fork_is_told()) return;
  Slot* const self = own_slot();
  if (self == nullptr) return;
  const KeptErrno kept;
  open_trace();
  refresh_modules();
  const bool by_wrapper = self->fork_site.pc != 0;
  if (!by_wrapper) {  // daemon, forkpty: fork inside of libc
    count_pools(self);
    ask_mpi();
  }
  record_threads(self);
  const std::uint32_t runtimes = prepare_runtimes(self);
  self->fork_record = record_fork(self, runtimes, by_wrapper ? self->fork_site : FORKSIGHT_FRAME().site(),
                                  by_wrapper ? trace::kForkByWrapper : 0U);
  record_python_in_prepare(self->fork_record);
  self->is_fork_by_wrapper = by_wrapper;
  if (by_wrapper) record_gone(self);
  record_unflushed(self->fork_record);
  record_shares(self->fork_record);
  record_timers(self->fork_record);
  record_file_locks(self->fork_record);
  name_fork_of_run(*self);
  record_cuda(self->fork_record);
  record_mpi(self->fork_record);
  quiesce_calls(self);   // last: nothing of ours comes between it and the fork
  self->fork_site = {};  // not after the fork: that would cost the parent a page
}

void on_parent() {
  Slot* const self = t_slot;
  if (self == nullptr) return;
  open_gate(self);
  watch_unflushed_in_parent();
  watch_shares_in_parent();
  settle_timers_in_parent();
  settle_file_locks_in_parent();
}

namespace {

// fork-child-safe: system calls and our own memory. Null: nothing is known of this thread.
Slot* begin_child() {
  release_modules_in_child();
  begin_next_epoch();
  Slot* const self = t_slot;
  if (self == nullptr) return nullptr;
  self->epoch = epoch();
  pass_turn_to_child(self->tid);
  // Before the thread gets its new identity: holders are compared with the old one.
  collect_orphans(self);
  note_lost_threads(self->fork_record);
  collect_lost_waiters(self);
  if (locks_are_watched()) {
    t_fast = nullptr;
    record_python_in_child(self->fork_record);
  }
  collect_calls(self);
  if (foresees()) foresee_in_child(*self);
  self->tid = sys::getpid();
  self->flags |= trace::kThreadMain;
  self->record = 0;
  self->overflow = 0;
  self->open_touch = 0;
  forget_run_in_child(*self);
  return self;
}

// What is in use on both sides from now on, and what is on one alone. Of a fork that was not recorded this is all that
// its child does.
void watch_copies_in_child(std::uint64_t fork) {
  watch_shares_in_child(fork);
  watch_draws_in_child(fork);
  settle_timers_in_child(fork);
  settle_file_locks_in_child(fork);
}

}  // namespace

// The policy calls into glibc's TLS look-up and libgomp's own setters, beside what begin_child does.
void on_child() {
  if (!is_told_to_child()) return watch_copies_in_child(0);
  const KeptErrno kept;
  Slot* const self = begin_child();
  const std::uint64_t fork = self == nullptr ? 0 : self->fork_record;
  watch_copies_in_child(fork);
  if (self == nullptr) return;
  watch_unflushed_in_child(fork);
  settle_runtimes_in_child(self);
  if (!self->is_fork_by_wrapper) restore_runtimes_in_child(self);
  settle_cuda_in_child(self->fork_record);
  settle_mpi_in_child(self->fork_record);
}

void prepare_bypass(Slot* self, const Site& site, std::uint32_t flags) {
  self->fork_entry_ns = now_ns();
  open_trace();
  refresh_modules();
  record_threads(self);
  for (RuntimeAtFork& runtime : self->runtimes) runtime.record = 0;
  self->fork_record = record_fork(self, 0, site, flags);
}

void child_of_bypass() {
  Slot* const self = begin_child();
  if (self == nullptr) return;
  watch_unflushed_in_child(self->fork_record);
  watch_copies_in_child(self->fork_record);
  record_streams(self->fork_record);
}

void parent_of_bypass(Slot* self, long child, int error) {
  if (self->fork_record == 0) return;
  append(trace::RecordType::kForked, trace::ForkedRecord{self->fork_record, static_cast<std::int32_t>(child),
                                                         child < 0 ? error : 0, now_ns() - self->fork_entry_ns});
}

}  // namespace forksight

using namespace forksight;

// The parent and the child return as from the real fork; errno is the real one's.
FORKSIGHT_EXPORT(pid_t, fork, ) {
  const auto real_fork = FORKSIGHT_NEXT(fork);
  if (!fork_is_told()) return real_fork();
  Slot* const self = own_slot();
  if (self == nullptr) return real_fork();
  const bool has_turn = take_turn(self);
  enter_fork(self, FORKSIGHT_FRAME().site());
  const pid_t child = real_fork();
  if (has_turn) give_turn(self);
  if (self->fork_site.pc != 0) self->fork_site = {};  // a prepare handler wrote the output that there was to tell of
  if (child == 0) {
    const KeptErrno kept;
    restore_runtimes_in_child(self);
  }
  if (child != 0 && self->fork_record != 0) {
    append(trace::RecordType::kForked,
           trace::ForkedRecord{self->fork_record, child, child < 0 ? errno : 0, now_ns() - self->fork_entry_ns});
  }
  return child;
}

// What pthread_atfork calls. Ours are registered first; all others in the guise of a trampoline (atfork_list.hpp).
FORKSIGHT_EXPORT(int, __register_atfork, void (*prepare)(), void (*parent)(), void (*child)(), void* library) {
  initialise();
  using Register = int (*)(void (*)(), void (*)(), void (*)(), void*);
  const AtforkHandlers guise = wrap_handlers({prepare, parent, child}, library);
  return reinterpret_cast<Register>(next_of(g_next.__register_atfork))(guise.prepare, guise.parent, guise.child,
                                                                       library);
}
