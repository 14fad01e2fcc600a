#include "watch/wait_class.hpp"

#include <linux/futex.h>
#include <linux/wait.h>
#include <sys/syscall.h>

#include <limits>

namespace forksight::watch {
namespace {

static_assert(SYS_futex == 202 && SYS_wait4 == 61 && SYS_waitid == 247, "the numbers are those of x86-64");
#ifndef FUTEX_LOCK_PI2
constexpr std::uint64_t FUTEX_LOCK_PI2 = 13;
#endif

// Arguments are registers: an int occupies the low half, the high half is whatever was there before.
std::int32_t as_int(std::uint64_t argument) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(argument)); }

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
    default:
      break;
  }
  return target;
}

WaitTarget classify_transfer(const Syscall& call, WaitClass kind) {
  WaitTarget target;
  target.fd = as_int(call.args[0]);
  if (target.fd >= 0) target.kind = kind;
  return target;
}

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
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return true;
    default: return false;
  }
}

model::WaitKind wait_kind(const Syscall& call) {
  switch (call.number) {
    case SYS_futex: return model::WaitKind::kFutex;
    case SYS_wait4:
    case SYS_waitid: return model::WaitKind::kWaitChild;
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2: return model::WaitKind::kPoll;
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return model::WaitKind::kSleep;
    default: return model::WaitKind::kOther;
  }
}

}  // namespace

WaitTarget classify(const ThreadSample& thread) {
  WaitTarget target;
  if (thread.ended()) {
    target.kind = WaitClass::kEnded;
    return target;
  }
  // Only an interruptible sleep inside of the call counts: a stopped or traced thread shows its call too, but
  // somebody may let it go on; a thread in state D waits for the kernel.
  if (thread.status.state != 'S' || !thread.call.in_syscall) return target;
  switch (thread.call.number) {
    case SYS_futex: return classify_futex(thread.call);
    case SYS_wait4: return classify_wait4(thread.call);
    case SYS_waitid: return classify_waitid(thread.call);
    case SYS_read: return classify_transfer(thread.call, WaitClass::kPipeRead);
    case SYS_write: return classify_transfer(thread.call, WaitClass::kPipeWrite);
    default: return target;
  }
}

model::Wait describe_wait(const ThreadSample& thread, const WaitFacts* facts) {
  model::Wait wait;
  wait.tid = thread.tid;
  wait.name = thread.status.name;
  wait.state = thread.status.state;
  if (thread.ended()) {
    wait.kind = model::WaitKind::kOther;
    return wait;
  }
  if (thread.call.running || wait.state == 'R') {
    wait.kind = model::WaitKind::kRunning;
    return wait;
  }
  if (!thread.call.in_syscall) return wait;
  const WaitTarget target = classify(thread);
  wait.kind = wait_kind(thread.call);
  wait.has_timeout = has_timeout(thread.call);
  if (wait.kind == model::WaitKind::kFutex) {
    const bool is_private = (thread.call.args[1] & FUTEX_PRIVATE_FLAG) != 0;
    wait.object = thread.call.args[0];
    wait.is_shared = !is_private && (facts == nullptr || facts->mapping != WordMapping::kPrivate);
  }
  if (wait.kind == model::WaitKind::kWaitChild) wait.target_pid = target.child;
  const bool is_pipe = facts != nullptr && facts->wakers_known;
  if (target.kind == WaitClass::kPipeRead && is_pipe) wait.kind = model::WaitKind::kPipeRead;
  return wait;
}

}  // namespace forksight::watch
