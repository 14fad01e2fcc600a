#include "fork/atfork_run.hpp"

#include <string.h>

#include "guest/clock.hpp"
#include "guest/sys.hpp"
#include "loader/modules.hpp"
#include "locks/orphans.hpp"
#include "record/fork_stack.hpp"
#include "record/thread_records.hpp"
#include "record/writer.hpp"
#include "threads/fork_threads.hpp"

#include "guest/house_rules.hpp"

// The trampolines. The list of atfork handlers has kMaxHandlers entries, and an entry has a handler for each phase.
// Each of these handlers has a trampoline: a small function, with an address of its own, that is registered with libc
// instead of the handler. Handlers have no arguments, so the register of the first argument is free for the number of
// the trampoline. A trampoline has no stack frame: it jumps to the common function, and the caller's frame stays
// unchanged.
asm(".pushsection .text\n"
    ".balign 16\n"
    "forksight_trampolines:\n"
    ".cfi_startproc\n"
    ".set forksight_trampoline, 0\n"
    ".rept 384\n"
    ".balign 16\n"
    "movl $forksight_trampoline, %edi\n"
    "jmp forksight_run_handler\n"
    ".set forksight_trampoline, forksight_trampoline + 1\n"
    ".endr\n"
    ".cfi_endproc\n"
    ".popsection\n");

extern "C" {
[[gnu::visibility("hidden")]] extern const std::byte forksight_trampolines[];
[[gnu::visibility("hidden"), gnu::used]] void forksight_run_handler(std::uint32_t code);
}

namespace forksight {

namespace {

using trace::HandlerPhase;
using trace::HandlerRunRecord;
using trace::HandlerTimes;

constexpr std::uint32_t kPhases = 3;
constexpr std::size_t kTrampolineBytes = 16;
static_assert(kMaxHandlers * kPhases == 384);

// The shim measures the handlers of the first 16 forks of a trace, and then those of every sixteenth fork. It does not
// measure every fork, because a server may fork for ever.
constexpr std::uint64_t kForksTimedEach = 16;

HandlerRunRecord* find_run(std::uint64_t record) {
  return find_record<HandlerRunRecord>(record, trace::RecordType::kHandlerRun);
}

HandlerTimes* times_of(std::uint64_t record, std::uint32_t place) {
  auto* const run =
      find_record_with<HandlerRunRecord>(record, trace::RecordType::kHandlerRun, (place + 1) * sizeof(HandlerTimes));
  return run != nullptr && place < run->count ? reinterpret_cast<HandlerTimes*>(run + 1) + place : nullptr;
}

bool is_timed_fork() {
  const std::uint64_t forks = forks_so_far();
  return forks < kForksTimedEach || forks % kForksTimedEach == 0;
}

// Writes the record for the handlers of one fork in this process. In the parent, a fork that is_timed_fork() does not
// select gets no record of its own: all such forks of one thread share one record.
std::uint64_t start_run(Slot& self, HandlerPhase phase) {
  const bool in_child = phase == HandlerPhase::kChild;
  if (!in_child) {
    if (!open_trace()) return 0;
    refresh_modules();
  }
  if (!trace_is_open()) return 0;
  const bool timed = is_timed_fork();
  auto* const untimed = in_child || timed ? nullptr : find_run(self.untimed_run);
  if (untimed != nullptr) {
    untimed->fork = phase == HandlerPhase::kPrepare ? 0 : self.fork_record;
    return self.untimed_run;
  }
  const std::uint64_t handlers = ensure_handlers_record();
  const std::uint64_t thread = in_child ? 0 : ensure_thread_record(self);
  const std::uint64_t stack = in_child || self.fork_site.pc == 0 ? 0 : record_fork_stack(self, self.fork_site);
  const std::uint32_t count = timed ? handler_count() : 0;
  Record record(trace::RecordType::kHandlerRun, sizeof(HandlerRunRecord) + count * sizeof(HandlerTimes));
  if (!record) return 0;
  auto* const run = record.as<HandlerRunRecord>();
  run->fork = phase == HandlerPhase::kPrepare ? 0 : self.fork_record;
  run->handlers = handlers;
  run->stack = stack;
  run->thread = thread;
  run->since_ns = now_ns();
  run->running = 0;
  run->count = count;
  memset(static_cast<void*>(run + 1), 0, count * sizeof(HandlerTimes));
  const std::uint64_t reference = record.commit();
  if (!in_child && !timed) self.untimed_run = reference;
  return reference;
}

// Returns the record of the handlers of the current fork. The first prepare handler of a fork starts this record, and
// later handlers use it. If the latest record says that a handler is running, that handler has called fork() itself.
// Then the latest record belongs to the outer fork, and must stay unchanged.
std::uint64_t run_for(Slot& self, HandlerPhase phase) {
  const auto* const run = find_run(self.handler_run);
  const bool is_current = run != nullptr && run->running == 0 && (phase != HandlerPhase::kPrepare || run->fork == 0);
  if (!is_current) self.handler_run = start_run(self, phase);
  return self.handler_run;
}

void note_time(std::uint64_t run, std::uint32_t place, HandlerPhase phase, std::uint64_t since_ns) {
  HandlerTimes* const times = times_of(run, place);
  if (times == nullptr) return;
  const std::uint64_t took = now_ns() - since_ns;
  switch (phase) {
    case HandlerPhase::kPrepare: times->prepare_ns = took; break;
    case HandlerPhase::kParent: times->parent_ns = took; break;
    case HandlerPhase::kChild: times->child_ns = took; break;
  }
}

void run_watched(Slot& self, std::uint32_t place, HandlerPhase phase, AtforkHandler handler) {
  const std::uint64_t reference = run_for(self, phase);
  const std::uint32_t process = epoch();
  const std::uint64_t since_ns = now_ns();
  auto* const run = find_run(reference);
  if (run != nullptr) {
    run->since_ns = since_ns;
    // No other thread of this process reads `running`. The analyzer reads the file without synchronisation. So it may
    // see this new value of `running` together with an older value of `since_ns`.
    __atomic_store_n(&run->running, trace::pack_running(phase, place), __ATOMIC_RELEASE);
  }
  ++self.handler_depth;
  t_fast = nullptr;
  handler();
  // The handler may have called fork(). Then the child returns here, too, but the record belongs to its parent.
  if (epoch() == process) {
    self.handler_run = reference;
    if (run != nullptr) {
      note_time(reference, place, phase, since_ns);
      __atomic_store_n(&run->running, 0, __ATOMIC_RELEASE);
    }
  }
  if (--self.handler_depth == 0) t_fast = fast_slot(&self);
}

AtforkHandler choose(const AtforkHandlers& handlers, HandlerPhase phase) {
  switch (phase) {
    case HandlerPhase::kPrepare: return handlers.prepare;
    case HandlerPhase::kParent: return handlers.parent;
    case HandlerPhase::kChild: break;
  }
  return handlers.child;
}

}  // namespace

AtforkHandler trampoline(std::uint32_t place, HandlerPhase phase) {
  const std::uint32_t code = place * kPhases + static_cast<std::uint32_t>(phase) - 1;
  return reinterpret_cast<AtforkHandler>(reinterpret_cast<std::uint64_t>(forksight_trampolines) +
                                         code * kTrampolineBytes);
}

void at_fork::Handlers::records(const Fork& fork) {
  auto* const run = find_run(fork.self.handler_run);
  // If a handler is running, that handler has made this fork. Then the record belongs to the outer fork.
  if (run != nullptr && run->fork == 0 && run->running == 0) run->fork = fork.record;
}

// The child forgets the records of the handlers of the forking thread, because they belong to the parent.
void at_fork::Handlers::reads(const Fork& fork) {
  fork.self.handler_run = 0;
  fork.self.untimed_run = 0;
}

}  // namespace forksight

using namespace forksight;

void forksight_run_handler(std::uint32_t code) {
  const std::uint32_t place = code / kPhases;
  const auto phase = static_cast<trace::HandlerPhase>(code % kPhases + 1);
  const AtforkHandler handler = choose(handlers_at(place), phase);
  Slot* const self = fork_is_watched() ? own_slot() : nullptr;
  if (self == nullptr) return handler();
  run_watched(*self, place, phase, handler);
}
