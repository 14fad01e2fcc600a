#include "proc/wait_class.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/wait.h>
#include <sys/syscall.h>

#include "proc/proc_fs.hpp"

namespace forksight::proc {
namespace {

static_assert(SYS_futex == 202 && SYS_wait4 == 61 && SYS_waitid == 247, "the numbers are those of x86-64");
#ifndef FUTEX_LOCK_PI2
constexpr std::uint64_t FUTEX_LOCK_PI2 = 13;
#endif

// The kernel reads the operation as an int. An int is in the lower half of its register, and the upper half may contain
// anything.
WaitTarget classify_futex(const Syscall& call) {
  const std::uint64_t operation = static_cast<std::uint32_t>(call.args[1]);
  const std::uint64_t command = operation & ~std::uint64_t{FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME};
  WaitTarget target;
  target.word = call.args[0];
  const bool waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
  target.priority_inherit = command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2;
  if ((!waits && !target.priority_inherit) || call.args[3] != 0) return target;
  const bool is_private = (operation & FUTEX_PRIVATE_FLAG) != 0;
  target.kind = is_private ? WaitClass::kPrivateFutex : WaitClass::kPlainFutex;
  return target;
}

WaitTarget classify_wait4(const Syscall& call) {
  WaitTarget target;
  target.kind = WaitClass::kChild;
  const std::int32_t pid = as_int(call.args[0]);
  target.child = pid > 0 ? pid : -1;
  return target;
}

WaitTarget classify_waitid(const Syscall& call) {
  WaitTarget target;
  const std::int32_t id = as_int(call.args[1]);
  switch (as_int(call.args[0])) {
    case P_ALL:
    case P_PGID:
      target.kind = WaitClass::kChild;
      target.child = -1;
      break;
    case P_PID:
      if (id <= 0) break;
      target.kind = WaitClass::kChild;
      target.child = id;
      break;
    case P_PIDFD:
      target.kind = WaitClass::kChild;
      target.pidfd = id;
      break;
    default: break;
  }
  return target;
}

WaitTarget classify_transfer(const Syscall& call, WaitClass kind) {
  WaitTarget target;
  target.fd = as_int(call.args[0]);
  if (target.fd >= 0) target.kind = kind;
  return target;
}

WaitTarget classify_fcntl(const Syscall& call) {
  WaitTarget target;
  target.fd = as_int(call.args[0]);
  const std::int32_t command = as_int(call.args[1]);
  if (command == F_SETLKW || command == F_OFD_SETLKW) target.kind = WaitClass::kFileLock;
  return target;
}

WaitTarget of_kind(WaitClass kind) {
  WaitTarget target;
  target.kind = kind;
  return target;
}

// True if the call may be a vfork. clone3() has its flags in memory, and forksight does not read these flags. A caller
// sleeps in clone3() only if it waits for a vfork child. So every clone3() in which the caller sleeps counts as a
// vfork.
bool may_vfork(const Syscall& call) {
  return call.number == SYS_vfork || call.number == SYS_clone3 || (call.args[0] & CLONE_VFORK) != 0;
}

}  // namespace

bool has_timeout(const Syscall& call) {
  switch (call.number) {
    case SYS_futex: return call.args[3] != 0;
    case SYS_poll:
    case SYS_epoll_wait:
    case SYS_epoll_pwait: return as_int(call.number == SYS_poll ? call.args[2] : call.args[3]) >= 0;
    case SYS_epoll_pwait2: return call.args[3] != 0;
    case SYS_ppoll: return call.args[2] != 0;
    case SYS_select:
    case SYS_pselect6: return call.args[4] != 0;
    case SYS_rt_sigtimedwait: return call.args[2] != 0;
    case SYS_semtimedop: return call.args[3] != 0;
    case SYS_recvmmsg:
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend: return call.args[4] != 0;
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return true;
    default: return false;
  }
}

bool is_poll(const Syscall& call) {
  switch (call.number) {
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2: return true;
    default: return false;
  }
}

WaitTarget classify(const ThreadSample& thread) {
  WaitTarget target;
  if (thread.ended()) {
    target.kind = WaitClass::kEnded;
    return target;
  }
  if (thread.status.state == 't') return of_kind(thread.status.tracer > 0 ? WaitClass::kTraced : WaitClass::kAwakable);
  // A stopped thread also shows its call. But another process may let the thread go on, so its call does not count.
  const bool sleeps = thread.status.state == 'S' || thread.status.state == 'D';
  if (!thread.call.in_syscall || !sleeps) return target;
  const bool is_clone =
      thread.call.number == SYS_vfork || thread.call.number == SYS_clone || thread.call.number == SYS_clone3;
  if (is_clone) return of_kind(may_vfork(thread.call) ? WaitClass::kVfork : WaitClass::kAwakable);
  // From here on only an interruptible sleep counts. A thread in state D waits for the kernel. A wait for a vfork child
  // is also a sleep in state D, but this function has already returned for such a wait.
  if (thread.status.state != 'S') return target;
  if (is_poll(thread.call)) return of_kind(has_timeout(thread.call) ? WaitClass::kAwakable : WaitClass::kPoll);
  switch (thread.call.number) {
    case SYS_futex: return classify_futex(thread.call);
    case SYS_wait4: return classify_wait4(thread.call);
    case SYS_waitid: return classify_waitid(thread.call);
    case SYS_recvmmsg:
      if (thread.call.args[4] != 0) return target;
      [[fallthrough]];
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg: return classify_transfer(thread.call, WaitClass::kRead);
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg: return classify_transfer(thread.call, WaitClass::kWrite);
    case SYS_flock: return classify_transfer(thread.call, WaitClass::kFileLock);
    case SYS_fcntl: return classify_fcntl(thread.call);
    default: return target;
  }
}

bool is_awake(std::int32_t pid, std::int32_t tid) {
  bool refused = false;
  const auto call = read_call(pid, tid, refused);
  // A thread that has ended shows "-1 0x0 0x0". This does not mean that it runs.
  if (!call || (!call->running && !call->in_syscall && call->sp == 0)) return false;
  ThreadSample thread;
  thread.status.state = 'S';
  thread.call = *call;
  return classify(thread).kind == WaitClass::kAwakable;
}

std::set<std::int32_t> find_vfork_children(std::int32_t parent) {
  std::set<std::int32_t> found;
  for (const std::int32_t tid : list_numbers(proc_path(parent, "task")).numbers) {
    // In vfork(), the kernel lets the thread sleep in state D (wait_for_vfork_done() of its kernel/fork.c).
    const auto stat = parse_stat(read_file(task_path(parent, tid, "stat")).text);
    if (!stat || stat->state != 'D') continue;
    bool refused = false;
    const auto thread = sample_thread(parent, tid, refused);
    if (!thread || classify(*thread).kind != WaitClass::kVfork) continue;
    for (const std::int32_t child : parse_pids(read_file(task_path(parent, tid, "children")).text)) found.insert(child);
  }
  return found;
}

}  // namespace forksight::proc
