// A helper thread of forksight stops the threads of the process. When the helper thread ends, even by a failure, the
// kernel releases all threads that the helper thread traces. A thread that is stopped by PTRACE_SEIZE and
// PTRACE_INTERRUPT gets no signal. But the stop takes the thread out of its system call, and the kernel then restarts
// the call. The kernel does not restart the calls that signal(7) lists in the section "Interruption of system calls and
// library functions by stop signals".
#include "image/stop.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <limits.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "image/refusal.hpp"
#include "image/user_registers.hpp"
#include "proc/restarted_calls.hpp"

namespace forksight::image {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kStopLimit = std::chrono::milliseconds(200);
constexpr std::size_t kMaxLate = 5;  // after so many late threads, forksight stops no more threads of the process
constexpr std::size_t kStackBytes = 64U << 10U;
constexpr std::int64_t kRestartNoHand = 514;  // the kernel's ERESTARTNOHAND: restart, unless a handler runs

// Newer kernel headers define this in asm/unistd_64.h.
constexpr std::int64_t kSysFutexWaitv = 449;

// True for a call that has not done anything yet when it fails with EINTR. Such a call can be made again.
bool may_be_repeated(std::uint64_t number) {
  switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_rt_sigtimedwait:
    case SYS_io_getevents: return true;
    default: return false;
  }
}

enum class Outcome { kDone, kGone, kRefused, kLate };

// Keeps the thread `tid` stopped, from stop() until this object is destroyed.
class Held {
 public:
  explicit Held(std::int32_t tid) : tid_(tid) {}
  ~Held() {
    if (is_stopped_) ptrace(PTRACE_DETACH, tid_, nullptr, signal_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  Outcome stop();
  // Reads the registers. If the stop made a system call fail with EINTR, and the call can be repeated, changes the
  // registers so that the kernel restarts the call.
  bool read(user_regs_struct& registers);

 private:
  std::int32_t tid_;
  bool is_stopped_ = false;
  long signal_ = 0;  // a signal that stopped the thread before PTRACE_INTERRUPT did; the destructor delivers it
};

Outcome Held::stop() {
  if (ptrace(PTRACE_SEIZE, tid_, nullptr, nullptr) != 0) return errno == ESRCH ? Outcome::kGone : Outcome::kRefused;
  if (ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) != 0) return Outcome::kGone;
  const auto deadline = Clock::now() + kStopLimit;
  auto pause = std::chrono::microseconds(10);
  for (;;) {
    int status = 0;
    const pid_t got = waitpid(tid_, &status, __WALL | __WNOTHREAD | WNOHANG);
    if (got == tid_ && WIFSTOPPED(status)) {
      is_stopped_ = true;
      if (status >> 16 != PTRACE_EVENT_STOP) signal_ = WSTOPSIG(status);
      return Outcome::kDone;
    }
    if (got == tid_ || (got < 0 && errno != EINTR)) return Outcome::kGone;
    if (Clock::now() >= deadline) return Outcome::kLate;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(1000));
  }
}

bool Held::read(user_regs_struct& registers) {
  iovec room{&registers, sizeof registers};
  if (ptrace(PTRACE_GETREGSET, tid_, NT_PRSTATUS, &room) != 0 || room.iov_len != sizeof registers) return false;
  const auto result = static_cast<std::int64_t>(registers.rax);
  if (signal_ == 0 && result == -EINTR && may_be_repeated(registers.orig_rax)) {
    ptrace(PTRACE_POKEUSER, tid_, offsetof(user, regs.rax), -kRestartNoHand);
  }
  return true;
}

std::vector<std::byte> read_stack(const Image& image, std::uint64_t sp) {
  const proc::Mapping* mapping = image.mapping_of(sp);
  if (mapping == nullptr || !mapping->readable) return {};
  return image.memory->bytes(sp, std::min<std::uint64_t>(mapping->end - sp, kStackBytes));
}

Outcome read_thread(const Image& image, Thread& thread) {
  Held held(thread.tid);
  const Outcome outcome = held.stop();
  if (outcome != Outcome::kDone) return outcome;
  user_regs_struct registers{};
  if (!held.read(registers)) return Outcome::kGone;
  thread.registers = by_dwarf_number(registers);
  thread.fs_base = registers.fs_base;
  const bool has_moved = !thread.call || thread.call->pc != registers.rip || thread.call->sp != registers.rsp;
  if (has_moved) {
    thread.call.reset();
    if (is_in_call(registers)) thread.call = call_of(registers);
    thread.state = thread.call ? 'S' : 'R';
    thread.stack = read_stack(image, registers.rsp);
  }
  return outcome;
}

struct Progress {
  std::size_t next = 0;
  std::size_t late = 0;
  int refused = 0;  // errno of the first refusal
};

// False if a stop would end the thread's sleep: the thread waits for a futex whose word has changed, so the futex call
// would return when the kernel restarts it.
bool would_stay_asleep(const Image& image, const Thread& thread) {
  if (thread.state != 'S' || !thread.call || thread.call->number != SYS_futex) return true;
  return proc::would_wait_again(*thread.call, image.memory->value<std::uint32_t>(thread.call->args[0]));
}

// Reads threads until all are done, or one does not stop in time (it is late), or the kernel refuses to stop one. The
// calling thread must then end, because this makes the kernel release the late thread.
void read_some(Image& image, std::span<const std::int32_t> tids, Progress& progress) {
  std::unordered_map<std::int32_t, Thread*> threads;
  for (Thread& thread : image.threads) threads.try_emplace(thread.tid, &thread);
  while (progress.next < tids.size()) {
    const std::int32_t tid = tids[progress.next++];
    const auto thread = threads.find(tid);
    if (thread == threads.end() || !may_be_stopped(*thread->second)) continue;
    if (!would_stay_asleep(image, *thread->second)) continue;
    const Outcome outcome = read_thread(image, *thread->second);
    if (outcome == Outcome::kRefused && progress.refused == 0) progress.refused = errno;
    if (outcome == Outcome::kRefused) return;
    if (outcome == Outcome::kLate) {
      ++progress.late;
      return;
    }
  }
}

}  // namespace

bool may_be_stopped(const proc::Syscall& call) {
  switch (call.number) {
    case SYS_futex: return proc::is_restarted_futex(call.args[1]);
    // If a write is interrupted when it is half done, it returns a short count. Many programs do not expect a short
    // count from a pipe. According to POSIX, a write of up to PIPE_BUF bytes is never half done.
    case SYS_write:
    case SYS_sendto: return call.args[2] <= PIPE_BUF;
    case kSysFutexWaitv:
    case SYS_read:
    case SYS_readv:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_flock:
    case SYS_fcntl:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_restart_syscall:
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_accept:
    case SYS_accept4:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_open:
    case SYS_openat: return true;
    default: return false;
  }
}

bool may_be_stopped(const Thread& thread) {
  if (thread.has_ended) return false;
  if (thread.state == 'S' && thread.call) return may_be_stopped(*thread.call);
  return thread.state == 'R';
}

void stop_and_read_registers(Image& image, std::span<const std::int32_t> tids) {
  if (image.is_core) return;
  Progress progress;
  while (progress.next < tids.size() && progress.refused == 0 && progress.late < kMaxLate) {
    try {
      std::thread(read_some, std::ref(image), tids, std::ref(progress)).join();
    } catch (const std::system_error&) {
      progress.refused = EAGAIN;  // the limit on threads was reached
    }
  }
  if (progress.refused != 0) {
    image.limits.push_back(fmt::format("forksight could not stop threads of {} ({}): their stacks may be incomplete",
                                       pid_and_name(image.pid), std::strerror(progress.refused)));
  }
  if (progress.late > 0) {
    image.limits.push_back(fmt::format("{} thread{} of {} did not stop within 200 ms: stacks may be incomplete",
                                       progress.late, progress.late == 1 ? "" : "s", pid_and_name(image.pid)));
  }
}

}  // namespace forksight::image
