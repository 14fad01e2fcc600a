// The hooks of forks that run no atfork handlers. The hooks themselves record what the shim's handlers would record.
// Pools and libc's locks are not cured at such a fork. vfork, which copies no memory, is in hooks_vfork.cpp.
#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "fork/hooks_fork.hpp"
#include "guest/site.hpp"
#include "loader/next.hpp"
#include "record/slots.hpp"
#include "threads/fork_threads.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

struct CloneChild {
  int (*function)(void*);
  void* argument;
};

int run_clone_child(void* child) {
  child_of_bypass();
  const auto* const real = static_cast<const CloneChild*>(child);
  return real->function(real->argument);
}

// True if the child gets a copy of the memory, and uses the TLS of the calling thread in this copy. In all other cases
// the shim passes the call on unchanged.
bool is_fork(int flags) { return (flags & (CLONE_VM | CLONE_SETTLS)) == 0; }

}  // namespace

// Async-signal-safe, as POSIX requires.
FORKSIGHT_EXPORT(pid_t, _Fork, ) {
  const auto real = reinterpret_cast<pid_t (*)()>(next_of(g_next._Fork));
  if (!fork_is_watched()) return real();
  Slot* const self = own_slot();
  if (self == nullptr) return real();
  prepare_bypass(self, FORKSIGHT_FRAME().site(), trace::kForkBypassed);
  const pid_t child = real();
  if (child == 0) {
    child_of_bypass();
  } else {
    parent_of_bypass(self, child, errno);
  }
  return child;
}

// The last three arguments are optional: `flags` decides whether they are used. They are passed on unchanged.
FORKSIGHT_EXPORT(int, clone, int (*function)(void*), void* stack, int flags, void* argument, void* parent_tid,
                 void* thread_pointer, void* child_tid) {
  using Clone = int (*)(int (*)(void*), void*, int, void*, void*, void*, void*);
  const auto real = reinterpret_cast<Clone>(next_of(g_next.clone));
  Slot* const self =
      is_fork(flags) && function != nullptr && stack != nullptr && fork_is_watched() ? own_slot() : nullptr;
  if (self == nullptr) return real(function, stack, flags, argument, parent_tid, thread_pointer, child_tid);
  // The child reads this struct in its copy of the caller's stack.
  CloneChild child{function, argument};
  prepare_bypass(self, FORKSIGHT_FRAME().site(), trace::kForkBypassed | trace::kForkByClone);
  const int pid = real(run_clone_child, stack, flags, &child, parent_tid, thread_pointer, child_tid);
  parent_of_bypass(self, pid, errno);
  return pid;
}
