// The handlers of signals, asked from and given to the kernel. async-signal-safe, fork-child-safe.
#pragma once

#include <signal.h>

#include <cstdint>

#include "guest/sys.hpp"

namespace forksight {

// struct kernel_sigaction of x86-64 (arch/x86/include/uapi/asm/signal.h).
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

// Either pointer may be null. Returns 0, or a negative value if the call fails.
inline long change_action(int number, const KernelAction* action, KernelAction* before) {
  return sys::call(SYS_rt_sigaction, number, sys::word(action), sys::word(before), sizeof(std::uint64_t));
}

}  // namespace forksight
