#include "image/user_registers.hpp"

#include <cerrno>

namespace forksight::image {

symbols::Registers by_dwarf_number(const user_regs_struct& r) {
  return {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
          r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
}

bool is_in_call(const user_regs_struct& registers) {
  // Errors of linux/errno.h, from ERESTARTSYS (512) to ERESTART_RESTARTBLOCK (516).
  const auto result = static_cast<std::int64_t>(registers.rax);
  const bool is_cut_short = result == -EINTR || (result <= -512 && result >= -516);
  return static_cast<std::int64_t>(registers.orig_rax) >= 0 && is_cut_short;
}

proc::Syscall call_of(const user_regs_struct& r) {
  proc::Syscall call;
  call.in_syscall = true;
  call.number = static_cast<std::int64_t>(r.orig_rax);
  call.args = {r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9};
  call.sp = r.rsp;
  call.pc = r.rip;
  return call;
}

}  // namespace forksight::image
