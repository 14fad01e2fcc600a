// A child whose n-th system call fails as it is told, or moves three bytes only, and that is looked at afterwards: by
// ptrace, so that whatever makes the call meets it, libc included.
#pragma once

#include <linux/futex.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "child.hpp"

namespace forksight::ipc::test {

struct fault {
  enum class kind { none, fails, is_short } how = kind::none;
  unsigned long at = 0;  // which of the calls that may fail
  int error = 0;
};

struct faulted {
  unsigned long calls = 0;  // that may fail
  long hit = -1;            // the number of the call that did; -1: none
  int status = -1;          // of the child: 0 if all is well
};

// `operation` meets the fault, what comes before and after it does not; the last one's result is the child's exit
// status.
class injector {
 public:
  static faulted run(const fault& what, const std::function<void()>& prepare, const std::function<void()>& operation,
                     const std::function<int()>& conclude) {
    injector one(what, prepare, operation, conclude);
    return one.trace();
  }

 private:
  injector(const fault& what, const std::function<void()>& prepare, const std::function<void()>& operation,
           const std::function<int()>& conclude)
      : fault_(what), child_([&] {
          if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return 99;
          prepare();
          stop_here();
          operation();
          stop_here();
          return conclude();
        }) {}

  static void stop_here() { syscall(SYS_kill, getpid(), SIGSTOP); }

  // Those that cannot fail, or after whose failure the kernel has done what was asked.
  static bool may_fail(unsigned long number) {
    const unsigned long never[] = {SYS_close,       SYS_munmap,     SYS_brk,     SYS_kill,   SYS_getpid,
                                   SYS_gettid,      SYS_exit,       SYS_geteuid, SYS_getuid, SYS_tgkill,
                                   SYS_sched_yield, SYS_exit_group, SYS_write,   SYS_wait4,  SYS_rt_sigprocmask};
    return std::ranges::find(never, number) == std::end(never);
  }

  faulted trace() {
    int status = 0;
    if (waitpid(child_.pid(), &status, 0) != child_.pid() || !WIFSTOPPED(status)) return ended(status);
    ptrace(PTRACE_SETOPTIONS, child_.pid(), nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    bool is_entry = true;
    for (;;) {
      ptrace(PTRACE_SYSCALL, child_.pid(), nullptr, pending_);
      pending_ = 0;
      if (waitpid(child_.pid(), &status, 0) != child_.pid() || !WIFSTOPPED(status)) return ended(status);
      if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
        is_entry ? enter() : leave();
        is_entry = !is_entry;
      } else if (WSTOPSIG(status) == SIGSTOP) {
        break;
      } else {
        pending_ = WSTOPSIG(status);
      }
    }
    ptrace(PTRACE_DETACH, child_.pid(), nullptr, nullptr);
    found_.status = child_.wait();
    return found_;
  }

  faulted ended(int status) {
    child_.forget();
    found_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return found_;
  }

  void enter() {
    user_regs_struct registers = get();
    if (!may_fail(registers.orig_rax)) return;
    // Waking cannot, and a mutex of libc would sleep for ever; that one of the queue's own is lost is another test.
    if (registers.orig_rax == SYS_futex && (static_cast<int>(registers.rsi) & FUTEX_CMD_MASK) == FUTEX_WAKE) return;
    if (found_.calls++ != fault_.at || fault_.how == fault::kind::none) return;
    found_.hit = static_cast<long>(registers.orig_rax);
    if (fault_.how == fault::kind::fails) {
      registers.orig_rax = ~0ull;  // no call
      ptrace(PTRACE_SETREGS, child_.pid(), nullptr, &registers);
    } else {
      shorten(registers);
    }
  }

  void leave() {
    if (found_.hit < 0 || is_over_) return;
    is_over_ = true;
    if (fault_.how == fault::kind::fails) {
      user_regs_struct registers = get();
      registers.rax = static_cast<unsigned long long>(-fault_.error);
      ptrace(PTRACE_SETREGS, child_.pid(), nullptr, &registers);
    } else if (length_at_ != 0) {
      ptrace(PTRACE_POKEDATA, child_.pid(), length_at_, length_);
    }
  }

  // A message of one piece: only three bytes of it.
  void shorten(const user_regs_struct& registers) {
    if (registers.orig_rax != SYS_sendmsg && registers.orig_rax != SYS_recvmsg) return;
    const auto peek = [&](unsigned long long at) { return ptrace(PTRACE_PEEKDATA, child_.pid(), at, nullptr); };
    const auto first = static_cast<unsigned long long>(peek(registers.rsi + offsetof(msghdr, msg_iov)));
    length_at_ = first + offsetof(iovec, iov_len);
    length_ = peek(length_at_);
    ptrace(PTRACE_POKEDATA, child_.pid(), length_at_, std::min(length_, 3L));
  }

  user_regs_struct get() const {
    user_regs_struct registers{};
    ptrace(PTRACE_GETREGS, child_.pid(), nullptr, &registers);
    return registers;
  }

  fault fault_;
  child child_;
  faulted found_;
  long pending_ = 0;  // a signal for it
  bool is_over_ = false;
  unsigned long long length_at_ = 0;
  long length_ = 0;
};

}  // namespace forksight::ipc::test
