// The hook of syscall(). libstdc++ (futures, atomic waits, latches, semaphores, guards), Rust's standard library, and
// locks that programs implement themselves call syscall() to sleep in a futex.
//   Only a futex wait, a plain fork, the end of the calling thread and a new seccomp filter are handled here. All other
//   calls are passed on by a jump, with all registers and the stack unchanged. The reason is that an ordinary function
//   cannot make every call: a vfork, and a clone whose child shares the memory, must return to the caller's own frame,
//   on the stack that the caller named. An ordinary function can make a plain fork, because the child of a plain fork
//   returns on a copy of the stack. For all numbers that are not handled here, the hook is a few comparisons and a
//   jump, in assembly.
#include <errno.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "fork/hooks_fork.hpp"
#include "fork/hooks_syscall.hpp"
#include "guest/site.hpp"
#include "loader/next.hpp"
#include "locks/held.hpp"
#include "locks/orphans.hpp"
#include "record/slots.hpp"
#include "rights/rights.hpp"
#include "threads/ended.hpp"
#include "threads/fork_threads.hpp"
#include "threads/unending_waits.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

// The function that the assembly below jumps to: the real syscall(). Until the real function is known, this is a stub
// that finds it.
using Entry = void (*)();
extern "C" {
[[gnu::visibility("hidden")]] void forksight_first_syscall();
[[gnu::visibility("hidden")]] void forksight_raw_syscall();
[[gnu::visibility("hidden")]] extern Entry forksight_next_syscall;
constinit Entry forksight_next_syscall = forksight_first_syscall;
}

void set_next_syscall(void* function) { forksight_next_syscall = reinterpret_cast<Entry>(function); }

namespace {

using Syscall = long (*)(long number, ...);

// Called at the first calls of syscall(). Returns the code with which the call continues: the real function, or a
// direct system call while another thread is still looking for the real function.
extern "C" [[gnu::visibility("hidden"), gnu::used]] Entry forksight_find_syscall() {
  initialise();
  return forksight_next_syscall == forksight_first_syscall ? forksight_raw_syscall : forksight_next_syscall;
}

// Handles FUTEX_WAIT and FUTEX_WAIT_BITSET, with any flags. During the wait, the slot shows what the thread waits for.
extern "C" [[gnu::visibility("hidden"), gnu::used]] long forksight_futex_wait(long number,
                                                                              const volatile std::uint32_t* word,
                                                                              long operation, long value,
                                                                              const timespec* timeout, long word2,
                                                                              long value3) {
  const auto wait = reinterpret_cast<Syscall>(forksight_next_syscall);
  Slot* const slot = own_slot();
  if (slot == nullptr) return wait(number, word, operation, value, timeout, word2, value3);
  // This may be a wait in a signal handler that has interrupted another wait. So the facts about that wait are restored
  // afterwards.
  const std::uint64_t outer_object = slot->wait_object;
  const trace::WaitKind outer_kind = slot->wait_kind;
  slot->wait_object = reinterpret_cast<std::uint64_t>(word);
  compiler_fence();
  slot->wait_kind = trace::WaitKind::kFutex;
  Touch touch{0};
  if (FORKSIGHT_UNLIKELY(has_lost_threads()) && timeout == nullptr) {
    touch = touch_futex(word, static_cast<std::uint32_t>(operation), static_cast<std::uint32_t>(value),
                        FORKSIGHT_FRAME().site());
  }
  const long result = wait(number, word, operation, value, timeout, word2, value3);
  slot->wait_kind = outer_kind;
  slot->wait_object = outer_object;
  end_touch(touch, result == 0 ? 0 : errno);
  return result;
}

// Handles SYS_exit, which ends only this thread, without the clean-up of libc.
extern "C" [[gnu::visibility("hidden"), gnu::used]] long forksight_raw_exit(long number, long status) {
  end_slot_of_exiting_thread();
  return reinterpret_cast<Syscall>(forksight_next_syscall)(number, status);
}

// Handles SYS_fork, and a SYS_clone whose child gets a copy of the memory and uses the stack and the TLS of the calling
// thread in this copy. Does the same as the hook of _Fork().
extern "C" [[gnu::visibility("hidden"), gnu::used]] long forksight_raw_fork(long number, long a, long b, long c, long d,
                                                                            long e, long f) {
  const auto real = reinterpret_cast<Syscall>(forksight_next_syscall);
  Slot* const self = fork_is_watched() ? own_slot() : nullptr;
  if (self == nullptr) return real(number, a, b, c, d, e, f);
  const std::uint32_t by_clone = number == SYS_clone ? std::uint32_t{trace::kForkByClone} : 0U;
  prepare_bypass(self, FORKSIGHT_FRAME().site(), trace::kForkBypassed | trace::kForkBySyscall | by_clone);
  const long child = real(number, a, b, c, d, e, f);
  if (child == 0) {
    child_of_bypass();
  } else {
    parent_of_bypass(self, child, errno);
  }
  return child;
}

// Handles SYS_seccomp and SYS_prctl. libc has no function for seccomp(). libc has a function for prctl(), but some
// programs call prctl() through syscall().
extern "C" [[gnu::visibility("hidden"), gnu::used]] long forksight_change_filter(long number, long a, long b, long c,
                                                                                 long d, long e) {
  const auto real = reinterpret_cast<Syscall>(forksight_next_syscall);
  const bool by_prctl = number == SYS_prctl;
  const bool installs = by_prctl ? a == PR_SET_SECCOMP : a == SECCOMP_SET_MODE_FILTER || a == SECCOMP_SET_MODE_STRICT;
  if (by_prctl && a == PR_SET_TSC) counter_is_about_to_change(static_cast<unsigned long>(b));
  if (!installs) return real(number, a, b, c, d, e);
  const long of_seccomp = a == SECCOMP_SET_MODE_FILTER ? SECCOMP_MODE_FILTER : SECCOMP_MODE_STRICT;
  const Filter filter =
      read_new_filter(static_cast<unsigned long>(by_prctl ? b : of_seccomp), reinterpret_cast<const void*>(c));
  // With SECCOMP_FILTER_FLAG_TSYNC the filter also confines the other threads, which may be inside of the shim. So the
  // shim obeys the filter before the call. If the kernel then refuses the filter, the shim records less than it could.
  const bool is_for_all =
      !by_prctl && a == SECCOMP_SET_MODE_FILTER && (static_cast<unsigned long>(b) & SECCOMP_FILTER_FLAG_TSYNC) != 0;
  if (is_for_all) filter_was_installed(filter);
  const long result = real(number, a, b, c, d, e);
  if (result >= 0) filter_was_installed(filter);  // on success, the result is 0 or a descriptor
  return result;
}

}  // namespace

static_assert(SYS_seccomp == 317 && SYS_prctl == 157);
static_assert(SYS_clone == 56 && SYS_fork == 57 && SYS_exit == 60 && (CLONE_VM | CLONE_SETTLS) == 0x80100);
// FUTEX_WAIT is 0, FUTEX_WAIT_BITSET 9, flags are 0x80 and 0x100.
static_assert(SYS_futex == 202 && FUTEX_WAIT == 0 && FUTEX_WAIT_BITSET == 9 && FUTEX_CMD_MASK == ~0x180);
asm(FORKSIGHT_SYMVER_syscall R"(
  .pushsection .text, "ax", @progbits
  .globl syscall
  .type syscall, @function
  .balign 32
syscall:
  .cfi_startproc
  cmpq $202, %rdi
  je 1f
  cmpq $57, %rdi
  je forksight_raw_fork
  cmpq $56, %rdi
  je 2f
  cmpq $60, %rdi
  je forksight_raw_exit
  cmpq $317, %rdi
  je forksight_change_filter
  cmpq $157, %rdi
  je forksight_change_filter
3:
  jmp *forksight_next_syscall(%rip)
2:
  testl $0x80100, %esi
  jnz 3b
  testq %rdx, %rdx
  jnz 3b
  jmp forksight_raw_fork
1:
  movl %edx, %eax
  andl $~0x180, %eax
  je forksight_futex_wait
  cmpl $9, %eax
  je forksight_futex_wait
  jmp *forksight_next_syscall(%rip)
  .cfi_endproc
  .size syscall, .-syscall

  .hidden forksight_first_syscall
  .globl forksight_first_syscall
  .type forksight_first_syscall, @function
  .balign 32
forksight_first_syscall:
  .cfi_startproc
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  pushq %rdx
  .cfi_adjust_cfa_offset 8
  pushq %rcx
  .cfi_adjust_cfa_offset 8
  pushq %r8
  .cfi_adjust_cfa_offset 8
  pushq %r9
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call forksight_find_syscall
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %r9
  .cfi_adjust_cfa_offset -8
  popq %r8
  .cfi_adjust_cfa_offset -8
  popq %rcx
  .cfi_adjust_cfa_offset -8
  popq %rdx
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size forksight_first_syscall, .-forksight_first_syscall

  .hidden forksight_raw_syscall
  .globl forksight_raw_syscall
  .type forksight_raw_syscall, @function
  .balign 32
forksight_raw_syscall:
  .cfi_startproc
  movq %rdi, %rax
  movq %rsi, %rdi
  movq %rdx, %rsi
  movq %rcx, %rdx
  movq %r8, %r10
  movq %r9, %r8
  movq 8(%rsp), %r9
  syscall
  cmpq $-4095, %rax
  jae 1f
  ret
1:
  pushq %rax
  .cfi_adjust_cfa_offset 8
  call __errno_location@PLT
  popq %rcx
  .cfi_adjust_cfa_offset -8
  negl %ecx
  movl %ecx, (%rax)
  movq $-1, %rax
  ret
  .cfi_endproc
  .size forksight_raw_syscall, .-forksight_raw_syscall
  .popsection
)");

}  // namespace forksight
