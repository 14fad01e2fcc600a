// The hook of vfork. It makes the system call itself, because no ordinary function can call vfork: the child would
// return from that function, and then overwrite the stack frame that the parent still needs. As in glibc, the return
// address is kept in a register meanwhile, because parent and child each have their own registers. While the child
// runs, a mark is set in the thread's TLS. If the child calls exit(), which it must not do, the parent records the call
// when the parent continues.
#include <string.h>

#include <atomic>
#include <cstddef>

#include "fork/vfork_child.hpp"
#include "forksight/trace/vfork.hpp"
#include "guest/kept_errno.hpp"
#include "loader/modules.hpp"
#include "loader/next.hpp"
#include "record/slots.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

thread_local constinit std::int32_t t_vfork_child = 0;

namespace {

constexpr std::size_t kStackBytes = 4096;

// The first call of exit() by a child of vfork(). Further calls would show nothing new.
struct Exit {
  std::int32_t child;
  Site site;
  std::uint32_t bytes;
  bool cut;
  alignas(16) std::byte stack[kStackBytes];
};
constinit Exit g_exit = {};

enum Stage : std::uint32_t { kNone = 0, kBeingKept = 1, kKept = 2, kWritten = 3 };

}  // namespace

extern "C" {
// The stage of g_exit. The hook reads it after each vfork.
[[gnu::visibility("hidden"), gnu::used]] constinit std::atomic<std::uint32_t> forksight_vfork_exit{kNone};
[[gnu::visibility("hidden"), gnu::used]] void forksight_write_vfork_exit();
}

void note_vfork_exit(const Site& site) {
  std::uint32_t expected = kNone;
  if (!forksight_vfork_exit.compare_exchange_strong(expected, kBeingKept, std::memory_order_acq_rel)) return;
  const StackBound bound = stack_bound(t_slot, site.sp, kStackBytes);
  g_exit.child = t_vfork_child;
  g_exit.site = site;
  g_exit.bytes = read_stack(site.sp, g_exit.stack, bound);
  g_exit.cut = bound.cut || g_exit.bytes < bound.bytes;
  forksight_vfork_exit.store(kKept, std::memory_order_release);
}

extern "C" void forksight_write_vfork_exit() {
  const KeptErrno kept;
  std::uint32_t expected = kKept;
  if (!forksight_vfork_exit.compare_exchange_strong(expected, kWritten, std::memory_order_acq_rel)) return;
  initialise();
  if (!open_trace()) return;
  refresh_modules();
  const std::uint64_t stack =
      append_saved_stack(g_exit.site, g_exit.stack, g_exit.bytes, g_exit.cut ? trace::kStackCut : 0U);
  append(trace::RecordType::kVforkCall, trace::VforkCallRecord{stack, g_exit.child, trace::VforkCall::kExit},
         Importance::kFinding);
}

}  // namespace forksight

using namespace forksight;

// Defines an assembler symbol: the offset in g_next of the real function's address; see fast_path.hpp.
__attribute__((used, noinline, cold)) static void constants_of_vfork() {
  asm volatile(".set forksight_next_vfork, %c0" ::"i"(offsetof(Next, vfork)));
}

// rsi: the offset of the mark from the thread pointer. rdx: the mark's value before the call, which is not 0 if a child
// of vfork calls vfork. The kernel preserves both registers, and rdi. The code at label 4 calls the real vfork instead.
// The hook jumps to label 4 if the thread has a shadow stack, or if a filter may kill for getpid().
asm(FORKSIGHT_SYMVER_vfork R"(
  .pushsection .text
  .p2align 4
  .globl vfork
  .type vfork, @function
vfork:
  .cfi_startproc
  testl $2, %fs:0x48              # with a shadow stack, glibc's vfork is called
  jne 4f
  cmpb $0, forksight_refuses_getpid(%rip)
  jne 4f
1:
  movq forksight_t_vfork_child@gottpoff(%rip), %rsi
  movl %fs:(%rsi), %edx
  popq %rdi
  .cfi_adjust_cfa_offset -8
  .cfi_register %rip, %rdi
  movl $58, %eax                  # SYS_vfork
  syscall
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rip, 0
  testl %eax, %eax
  jne 2f
  movl $39, %eax                  # SYS_getpid
  syscall
  movl %eax, %fs:(%rsi)
  xorl %eax, %eax
  ret
2:
  movl %edx, %fs:(%rsi)
  cmpl $-4095, %eax
  jae 3f
  cmpl $2, forksight_vfork_exit(%rip)
  je 5f
  ret
3:
  negl %eax
  pushq %rax
  .cfi_adjust_cfa_offset 8
  call __errno_location@PLT
  popq %rdx
  .cfi_adjust_cfa_offset -8
  movl %edx, (%rax)
  movq $-1, %rax
  ret
4:
  movq forksight_g_next+forksight_next_vfork(%rip), %rax
  testq %rax, %rax
  je 1b
  jmp *%rax
5:
  pushq %rax
  .cfi_adjust_cfa_offset 8
  call forksight_write_vfork_exit
  popq %rax
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
  .size vfork, . - vfork
  .popsection
)");
