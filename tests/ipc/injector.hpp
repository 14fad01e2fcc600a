// Runs an operation in a child and injects one fault: a system call fails, or a sendmsg() or recvmsg() moves at most
// three bytes. Then the child checks the result. The injector uses ptrace, so it also reaches the system calls that
// libc makes.
#pragma once

#include <linux/futex.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <functional>

#include "child.hpp"

namespace forksight::ipc::test {

struct fault {
  enum class kind { none, fails, is_short } how = kind::none;
  unsigned long at = 0;  // which call gets the fault: its number among the calls that may fail, counted from 0
  int error = 0;
};

struct faulted {
  unsigned long calls = 0;  // the number of calls in the operation that may fail
  long hit = -1;            // the system call that got the fault (SYS_...); -1: none did
  int status = -1;          // the child's exit status, 0 if all is well; 128 + the signal that ended it
};

// `prepare`, `operation` and `conclude` run in the child. Only `operation` gets the fault. The result of `conclude` is
// the child's exit status.
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

  // False for system calls that never get the fault. Some of them do not fail, such as getpid(). close() closes the
  // descriptor even if it fails. If munmap() fails, the memory stays mapped, and no program can do anything about that.
  // Only libc calls brk(). If brk() fails, libc maps memory instead and keeps this memory, which would look like a
  // leak. The queue does not call wait4(), kill() or tgkill(). The queue calls write() only in watcher::signal(). That
  // function ignores the result, and runs in a thread that the injector does not trace.
  static bool may_fail(unsigned long number) {
    const unsigned long never[] = {SYS_close,       SYS_munmap,     SYS_brk,     SYS_kill,   SYS_getpid,
                                   SYS_gettid,      SYS_exit,       SYS_geteuid, SYS_getuid, SYS_tgkill,
                                   SYS_sched_yield, SYS_exit_group, SYS_write,   SYS_wait4};
    return std::ranges::find(never, number) == std::end(never);
  }
  // True for rt_sigprocmask() calls of glibc. pthread_create() of glibc blocks signals, and does not check whether the
  // call failed. After a failed call, glibc would restore a mask that the call has not filled in. Only calls of the
  // queue set a mask (SIG_SETMASK) and ask for the old mask at the same time.
  static bool is_of_libc(const user_regs_struct& registers) {
    return registers.orig_rax == SYS_rt_sigprocmask && (registers.rdi != SIG_SETMASK || registers.rdx == 0);
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
    if (!may_fail(registers.orig_rax) || is_of_libc(registers)) return;
    // FUTEX_WAKE never gets the fault, because libc also uses it: if a wake-up of libc were lost, a thread would wait
    // for ever. Liveness.ALostWakeUpOnlyDelaysTheMessage tests lost wake-ups of the queue.
    if (registers.orig_rax == SYS_futex && (static_cast<int>(registers.rsi) & FUTEX_CMD_MASK) == FUTEX_WAKE) return;
    if (found_.calls++ != fault_.at || fault_.how == fault::kind::none) return;
    found_.hit = static_cast<long>(registers.orig_rax);
    if (fault_.how == fault::kind::fails) {
      registers.orig_rax = ~0ull;  // no system call has this number, so the kernel does nothing
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

  // Shortens a message to at most three bytes. The message has only one iovec.
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
  long pending_ = 0;  // a signal that must still be passed on to the child
  bool is_over_ = false;
  unsigned long long length_at_ = 0;
  long length_ = 0;
};

}  // namespace forksight::ipc::test
