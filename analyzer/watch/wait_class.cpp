#include "watch/wait_class.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
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

// clone3() has its flags in memory; the caller of one that does not share its memory is never seen asleep in it.
bool may_vfork(const Syscall& call) {
  return call.number == SYS_vfork || call.number == SYS_clone3 || (call.args[0] & CLONE_VFORK) != 0;
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
  if (is_poll(call)) return model::WaitKind::kPoll;
  switch (call.number) {
    case SYS_futex: return model::WaitKind::kFutex;
    case SYS_wait4:
    case SYS_waitid: return model::WaitKind::kWaitChild;
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return model::WaitKind::kSleep;
    default: return model::WaitKind::kOther;
  }
}

}  // namespace

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
  const bool sleeps = thread.status.state == 'S' || thread.status.state == 'D';
  if (!thread.call.in_syscall || !sleeps) return target;
  const bool is_clone =
      thread.call.number == SYS_vfork || thread.call.number == SYS_clone || thread.call.number == SYS_clone3;
  if (is_clone) return of_kind(may_vfork(thread.call) ? WaitClass::kVfork : WaitClass::kAwakable);
  // Only an interruptible sleep inside of the call counts: a stopped thread shows its call too, but somebody may let it
  // go on; a thread in state D waits for the kernel, or for its vfork child.
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

namespace {

// By what the descriptor is; kOther where that is not known.
model::WaitKind kind_of_transfer(WaitClass kind, const WaitFacts& facts) {
  const bool reads = kind == WaitClass::kRead;
  if (facts.object.starts_with("eventfd:")) return model::WaitKind::kEventfd;
  if (facts.object.starts_with("socket:")) return reads ? model::WaitKind::kSocketRead : model::WaitKind::kSocketWrite;
  if (facts.object.starts_with("pipe:") || facts.is_fifo)
    return reads ? model::WaitKind::kPipeRead : model::WaitKind::kPipeWrite;
  return model::WaitKind::kOther;
}

void describe_word(const WaitFacts& facts, model::Wait& wait) {
  wait.use = facts.word.use;
  if (facts.word.lock != 0) wait.object = facts.word.lock;  // a rwlock's words are inside of it
  wait.owner = facts.word.owner;
  wait.readers = facts.word.readers;
  wait.mutex_type = facts.word.mutex_type;
  wait.owner_is_gone = facts.word.owner_is_gone;
  wait.object_module = facts.word.module;
  wait.module_bias = facts.word.bias;
  if (facts.pi_owner && *facts.pi_owner != 0) {
    wait.use = model::FutexUse::kMutex;
    wait.owner = *facts.pi_owner;
  }
}

}  // namespace

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
  const WaitTarget target = classify(thread);
  if (!thread.call.in_syscall && target.kind != WaitClass::kTraced) return wait;
  wait.kind = wait_kind(thread.call);
  wait.has_timeout = has_timeout(thread.call);
  if (wait.kind == model::WaitKind::kFutex) {
    const bool is_private = (thread.call.args[1] & FUTEX_PRIVATE_FLAG) != 0;
    wait.object = thread.call.args[0];
    wait.is_shared = !is_private && (facts == nullptr || facts->mapping != WordMapping::kPrivate);
  }
  if (wait.kind == model::WaitKind::kWaitChild) wait.target_pid = target.child;
  switch (target.kind) {
    case WaitClass::kRead:
    case WaitClass::kWrite:
      if (facts != nullptr) wait.kind = kind_of_transfer(target.kind, *facts);
      break;
    case WaitClass::kFileLock: wait.kind = model::WaitKind::kFileLock; break;
    case WaitClass::kVfork: wait.kind = model::WaitKind::kVfork; break;
    case WaitClass::kTraced: wait.kind = model::WaitKind::kTraced; break;
    default: break;
  }
  wait.fd = target.fd;
  if (facts == nullptr) return wait;
  if (wait.kind == model::WaitKind::kFutex) describe_word(*facts, wait);
  // In our numbers, where the process has others.
  const bool is_one_child = wait.target_pid > 0 && facts->wakers.size() == 1;
  if (is_one_child) wait.target_pid = facts->wakers.front().pid;
  wait.path = facts->object;
  wait.wakers_known = facts->wakers_known;
  for (const Waker& waker : facts->wakers) wait.wakers.push_back({waker.pid, waker.tid, waker.fd, waker.via});
  return wait;
}

}  // namespace forksight::watch
