// The hook of fork(), and the shim's own atfork handlers. participants.def lists what is done at each step of a fork.
// This file calls the steps.
//   The shim registers its handlers before all others (the hook of __register_atfork initialises the shim first). glibc
//   runs prepare handlers last-in-first-out and child handlers first-in-first-out. So the shim's handlers run closest
//   to the fork on both sides. The shim's prepare handler sees what the other libraries' handlers did to their pools
//   and locks. The shim's child handler runs before any handler of another library can touch what the fork broke.
//   In a process that never had a second thread, fork() is passed through if no participant has anything to record.
#include <pty.h>
#include <unistd.h>

#include "fork/atfork_list.hpp"
#include "fork/fork_record.hpp"
#include "fork/fork_turn.hpp"
#include "fork/hooks_fork.hpp"
#include "fork/participants.hpp"
#include "guest/clock.hpp"
#include "guest/kept_errno.hpp"
#include "guest/sys.hpp"
#include "loader/lazy_next.hpp"
#include "loader/modules.hpp"
#include "loader/next.hpp"
#include "record/own_ids.hpp"
#include "record/writer.hpp"
#include "threads/fork_threads.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

Fork fork_of(Slot& self, ForkKind kind, std::uint32_t flags) { return {self, kind, flags, self.fork_record, 0, 0}; }

// The fork that the calling thread is in, as noted by its hook or by the shim's prepare handler.
Fork current_fork(Slot& self) { return fork_of(self, self.fork_kind, 0); }

// Notes where fork() was called, and takes the step kEnters. The step calls functions of OpenMP runtimes, MPI and the
// CUDA driver, which may change errno. on_prepare() and end_fork_call() call such functions, too. So enter_fork(),
// on_prepare() and end_fork_call() restore errno.
void enter_fork(Slot& self, const Site& site) {
  const KeptErrno kept;
  try_filter(TryBy::kClone);
  self.fork_site = site;
  self.fork_record = 0;
  self.fork_entry_ns = now_ns();
  self.held_at_entry = depth(self);
  Fork fork = fork_of(self, ForkKind::kWrapper, 0);
  take_step<kEnters>(fork);
}

void prepare_and_record(Fork& fork) {
  open_trace();
  refresh_modules();
  take_step<kPrepares>(fork);
  append_fork_record(fork);
  take_step<kRecords>(fork);
}

// Takes the steps of the child, from kReads to kStarts. fork-child-safe: it uses only system calls and the shim's own
// memory. If the forking thread has no slot, nothing is recorded about its fork.
void start_child() {
  begin_next_epoch();
  Slot* const self = t_slot;
  if (self == nullptr) {
    renew_own_ids(nullptr);
    start_copies_in_child(0);
    return;
  }
  self->epoch = epoch();
  Fork fork = current_fork(*self);
  take_step<kReads>(fork);
  renew_own_ids(self);
  start_copies_in_child(fork.record);
  take_step<kStarts>(fork);
}

}  // namespace

void on_prepare() {
  count_fork();
  if (!tell_of_fork()) return;
  // If fork_site is set, the hook of fork() has called notice_unseen_fork() already.
  if (t_slot == nullptr || t_slot->fork_site.pc == 0) notice_unseen_fork();
  Slot* const self = own_slot();
  if (self == nullptr) return;
  const KeptErrno kept;
  try_filter(TryBy::kClone);
  const bool by_wrapper = self->fork_site.pc != 0;
  self->fork_kind = by_wrapper ? ForkKind::kWrapper : ForkKind::kInLibc;
  t_fork_is_told = true;
  Fork fork = fork_of(*self, self->fork_kind, by_wrapper ? trace::kForkByWrapper : 0U);
  if (!by_wrapper) {
    self->fork_site = FORKSIGHT_FRAME().site();
    refresh_modules();
    take_step<kEnters>(fork);
  }
  prepare_and_record(fork);
  self->fork_site = {};  // cleared before the fork, because a write after it would make the kernel copy a page
}

void on_parent() {
  Slot* const self = t_slot;
  if (self == nullptr || !t_fork_is_told) return;
  t_fork_is_told = false;
  Fork fork = current_fork(*self);
  take_step<kContinues>(fork);
}

void on_child() {
  const bool is_told = fork_is_watched() || t_fork_is_told;
  if (!is_told) {
    begin_next_epoch();
    renew_own_ids(t_slot);
    return start_copies_in_child(0);
  }
  const KeptErrno kept;
  start_child();
}

ForkCall begin_fork_call(const Site& site) {
  if (!tell_of_fork()) return {};
  notice_unseen_fork();
  Slot* const self = own_slot();
  if (self == nullptr) return {};
  const ForkCall call{self,
                      epoch(),
                      take_turn(self),
                      self->fork_kind,
                      self->held_at_entry,
                      self->fork_record,
                      self->fork_entry_ns,
                      self->fork_site,
                      t_fork_is_told};
  enter_fork(*self, site);
  return call;
}

void end_fork_call(const ForkCall& call, long child) {
  Slot* const self = call.self;
  if (self == nullptr) return;
  const KeptErrno kept;
  if (call.has_turn) release_turn(self);
  Fork fork = current_fork(*self);
  if (epoch() != call.epoch) {
    take_step<kLeaves>(fork);
  } else {
    append_forked(fork, child, kept.value());
  }
  // If this fork was made in a handler of another fork, or in a signal handler during another fork, the state of that
  // outer fork is restored. In all other cases these values are already right, and a write after the fork would make
  // the kernel copy a page.
  if (self->fork_site.pc != call.outer_site.pc) self->fork_site = call.outer_site;
  if (call.outer_site.pc == 0 && !call.outer_is_told) return;
  self->fork_kind = call.outer_kind;
  self->held_at_entry = call.outer_held;
  self->fork_record = call.outer_record;
  self->fork_entry_ns = call.outer_entry_ns;
  t_fork_is_told = call.outer_is_told;
}

void prepare_bypass(Slot* self, const Site& site, std::uint32_t flags) {
  notice_unseen_fork();
  try_filter(TryBy::kClone);
  self->fork_entry_ns = now_ns();
  self->fork_kind = ForkKind::kBypassed;
  const Site outer = self->fork_site;  // the call of the fork() that this thread is inside of; pc 0: none
  self->fork_site = site;
  Fork fork = fork_of(*self, ForkKind::kBypassed, flags);
  prepare_and_record(fork);
  self->fork_site = outer;
}

void child_of_bypass() { start_child(); }

void parent_of_bypass(Slot* self, long child, int error) { append_forked(current_fork(*self), child, error); }

}  // namespace forksight

using namespace forksight;

// Parent and child return the result of the real fork, with the errno of the real fork.
FORKSIGHT_EXPORT(pid_t, fork, ) {
  const auto real_fork = FORKSIGHT_NEXT(fork);
  const ForkCall call = begin_fork_call(FORKSIGHT_FRAME().site());
  const pid_t child = real_fork();
  end_fork_call(call, child);
  return child;
}

// The parent ends inside of the real function. So this function returns only in the child, or in the parent if the fork
// failed.
FORKSIGHT_EXPORT(int, daemon, int stay, int keep_output) {
  const auto real = FORKSIGHT_LAZY_NEXT(daemon);
  const ForkCall call = begin_fork_call(FORKSIGHT_FRAME().site());
  const int result = real(stay, keep_output);
  end_fork_call(call, result);
  return result;
}

FORKSIGHT_EXPORT(int, forkpty, int* terminal, char* name, const termios* settings, const winsize* size) {
  const auto real = FORKSIGHT_LAZY_NEXT(forkpty);
  const ForkCall call = begin_fork_call(FORKSIGHT_FRAME().site());
  const int child = real(terminal, name, settings, size);
  end_fork_call(call, child);
  return child;
}

// pthread_atfork calls this function. initialise() registers the shim's own handlers first. For each other handler, a
// trampoline is registered instead (atfork_list.hpp).
FORKSIGHT_EXPORT(int, __register_atfork, void (*prepare)(), void (*parent)(), void (*child)(), void* library) {
  initialise();
  using Register = int (*)(void (*)(), void (*)(), void (*)(), void*);
  const AtforkHandlers registered = wrap_handlers({prepare, parent, child}, library);
  return reinterpret_cast<Register>(next_of(g_next.__register_atfork))(registered.prepare, registered.parent,
                                                                       registered.child, library);
}
