#include "watch/describe_wait.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "proc/wait_class.hpp"
#include "watch/wait_words.hpp"

namespace forksight::watch {
namespace {

model::WaitKind wait_kind(const proc::Syscall& call) {
  if (proc::is_poll(call)) return model::WaitKind::kPoll;
  switch (call.number) {
    case SYS_futex: return model::WaitKind::kFutex;
    case SYS_wait4:
    case SYS_waitid: return model::WaitKind::kWaitChild;
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return model::WaitKind::kSleep;
    case SYS_semop:
    case SYS_semtimedop: return model::WaitKind::kSemaphore;
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait: return model::WaitKind::kSignal;
    default: return model::WaitKind::kOther;
  }
}

// Returns the kind of a wait at a descriptor, which depends on what the descriptor refers to. kOther: the kind is not
// known.
model::WaitKind kind_of_transfer(proc::WaitClass kind, const WaitFacts& facts) {
  const bool reads = kind == proc::WaitClass::kRead;
  if (facts.object.starts_with("eventfd:")) return reads ? model::WaitKind::kEventfd : model::WaitKind::kEventfdWrite;
  if (facts.object.starts_with("socket:")) return reads ? model::WaitKind::kSocketRead : model::WaitKind::kSocketWrite;
  if (facts.object.starts_with("pipe:") || facts.is_fifo)
    return reads ? model::WaitKind::kPipeRead : model::WaitKind::kPipeWrite;
  return model::WaitKind::kOther;
}

void describe_word(const WaitFacts& facts, model::Wait& wait) {
  wait.use = facts.word.use;
  if (facts.word.lock != 0) wait.object = facts.word.lock;  // a rwlock contains several futex words
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

model::Wait describe_wait(const proc::ThreadSample& thread, const WaitFacts* facts) {
  model::Wait wait;
  wait.tid = thread.tid;
  wait.name = thread.status.name;
  wait.state = thread.status.state;
  wait.call = describe_call(thread);
  if (thread.ended()) {
    wait.kind = model::WaitKind::kOther;
    return wait;
  }
  if (thread.call.running || wait.state == 'R') {
    wait.kind = model::WaitKind::kRunning;
    return wait;
  }
  const proc::WaitTarget target = proc::classify(thread);
  if (!thread.call.in_syscall && target.kind != proc::WaitClass::kTraced) return wait;
  wait.kind = wait_kind(thread.call);
  wait.has_timeout = proc::has_timeout(thread.call);
  if (wait.kind == model::WaitKind::kFutex) {
    const bool is_private = (thread.call.args[1] & FUTEX_PRIVATE_FLAG) != 0;
    wait.object = thread.call.args[0];
    wait.is_shared = !is_private && (facts == nullptr || facts->mapping != WordMapping::kPrivate);
  }
  if (wait.kind == model::WaitKind::kWaitChild) wait.target_pid = target.child;
  switch (target.kind) {
    case proc::WaitClass::kRead:
    case proc::WaitClass::kWrite:
      if (facts != nullptr) wait.kind = kind_of_transfer(target.kind, *facts);
      break;
    case proc::WaitClass::kFileLock: wait.kind = model::WaitKind::kFileLock; break;
    case proc::WaitClass::kVfork: wait.kind = model::WaitKind::kVfork; break;
    case proc::WaitClass::kTraced: wait.kind = model::WaitKind::kTraced; break;
    default: break;
  }
  wait.fd = target.fd;
  if (facts == nullptr) return wait;
  if (wait.kind == model::WaitKind::kFutex) describe_word(*facts, wait);
  // The argument of the call is a pid of the process's own pid namespace. The pid of a waker belongs to forksight's
  // namespace. So if the awaited child is the only waker, its pid is taken from the waker.
  const bool is_one_child = wait.target_pid > 0 && facts->wakers.size() == 1;
  if (is_one_child) wait.target_pid = facts->wakers.front().pid;
  wait.path = facts->object;
  wait.wakers_known = facts->wakers_known;
  for (const Waker& waker : facts->wakers) wait.wakers.push_back({waker.pid, waker.tid, waker.fd, waker.via});
  return wait;
}

}  // namespace forksight::watch
