// pthread_mutex_lock in assembly for x86-64. It does what the compiled code of acquire() in lock_guard.hpp does, but it
// needs no frame pointer and saves fewer registers. docs/performance.md shows how much time this saves.
// docs/decisions/0011-assembly-for-one-lock.md says why no other lock hook is written in assembly.
//   The callee-saved registers keep the caller's values, and the unwind information describes each push. So unwinding
//   and cancellation pass through this function. Before the function requests the lock, it stores the facts about the
//   lock in the thread's held array, in the first free entry. After the lock was taken, the function stores only `top`,
//   which marks the end of the entries that are in use. held.hpp explains this order, and what a signal handler may do
//   in between.
#pragma once

#include <cstddef>

#include "loader/next.hpp"
#include "record/slots.hpp"

// Assembly outside of a function cannot use constants of C++. So static assertions compare the numbers in the assembly
// with the constants. Values that depend on the list of hooks become assembler symbols. A function that is never called
// defines these symbols.
static_assert(offsetof(forksight::Slot, top) == 0);
static_assert(forksight::kHeldArrayBytes == 2048);
static_assert(sizeof(forksight::HeldLock) == 32 && offsetof(forksight::HeldLock, lock) == 0);
static_assert(offsetof(forksight::HeldLock, site) == 8 && offsetof(forksight::Site, pc) == 0);
static_assert(offsetof(forksight::Site, sp) == 8 && offsetof(forksight::Site, fp) == 16);
static_assert(static_cast<int>(forksight::trace::LockKind::kMutex) - 1 == 0);  // its tag

__attribute__((used, noinline, cold)) static void forksight_assembler_constants() {
  asm volatile(".set forksight_next_mutex_lock, %c0\n\t.set forksight_overflow, %c1\n" ::"i"(
                   offsetof(::forksight::Next, pthread_mutex_lock)),
               "i"(offsetof(::forksight::Slot, overflow)));
}

// clang-format off

#define FORKSIGHT_ASM_LOAD(variable, to)              \
  "  movq " #variable "@gottpoff(%rip), %" #to "\n"   \
  "  movq %fs:(%" #to "), %" #to "\n"

// rcx: slot, rdx: entry, rdi: lock, rsi: the caller's stack pointer. Keeps eax.
#define FORKSIGHT_ASM_PUSH      \
  "4:\n"                        \
  "  movq %rsi, 16(%rdx)\n"     \
  "  movq %rdi, (%rdx)\n"       \
  "  movq %rbp, 24(%rdx)\n"     \
  "  movq (%rsp), %r8\n"        \
  "  movq %r8, 8(%rdx)\n"       \
  "  leaq 32(%rdx), %r9\n"      \
  "  movq %r9, (%rcx)\n"        \
  "  cmpq %rsi, 16(%rdx)\n"     \
  "  jne 4b\n"                  \
  "  ret\n"

// If t_fast is null, this code calls `extern "C" int forksight_slow_pthread_mutex_lock(pthread_mutex_t*, Frame)`. For
// this call it makes the same stack frame that a compiler would make, and the argument of the type Frame is the address
// of that stack frame. t_fast is null in four cases: the thread has no slot yet, because this is its first lock; the
// process is a child that inherited orphaned locks; the thread is in an atfork handler; or orders or times of locks are
// recorded.
//   After the real call, this code uses t_slot, as acquire() does. The reason is that a signal handler may fork during
//   the real call, and t_fast may then be null in the child. The child also completes the call, and its slot also gets
//   an entry for the mutex. t_slot is not null, because t_fast was not null. If the real call returns EOWNERDEAD (130),
//   the lock was also acquired.
#define FORKSIGHT_MUTEX_LOCK_IN_ASSEMBLY                                  \
  asm(".pushsection .text.forksight_hooks,\"ax\",@progbits\n"             \
      "  .p2align 6\n"                                                    \
      FORKSIGHT_SYMVER_pthread_mutex_lock                                 \
      "  .globl pthread_mutex_lock\n"                                     \
      "  .type pthread_mutex_lock,@function\n"                            \
      "pthread_mutex_lock:\n"                                             \
      "  .cfi_startproc\n"                                                \
      FORKSIGHT_ASM_LOAD(forksight_t_fast, rax)                           \
      "  testq %rax, %rax\n"                                              \
      "  je 3f\n"                                                         \
      "  movq (%rax), %rdx\n"                                             \
      "  testl $2047, %edx\n"                                             \
      "  je 5f\n"                                                         \
      "  leaq 8(%rsp), %rsi\n"                                            \
      "  movq %rsi, 16(%rdx)\n"                                           \
      "  movq %rdi, (%rdx)\n"                                             \
      "  movq %rbp, 24(%rdx)\n"                                           \
      "  movq (%rsp), %r8\n"                                              \
      "  movq %r8, 8(%rdx)\n"                                             \
      "  pushq %rdi\n"                                                    \
      "  .cfi_adjust_cfa_offset 8\n"                                      \
      "  pushq %rdx\n"                                                    \
      "  .cfi_adjust_cfa_offset 8\n"                                      \
      "  subq $8, %rsp\n"                                                 \
      "  .cfi_adjust_cfa_offset 8\n"                                      \
      "  call *forksight_g_next+forksight_next_mutex_lock(%rip)\n"        \
      "  movq 8(%rsp), %rdx\n"                                            \
      "  movq 16(%rsp), %rdi\n"                                           \
      "  addq $24, %rsp\n"                                                \
      "  .cfi_adjust_cfa_offset -24\n"                                    \
      "  leaq 8(%rsp), %rsi\n"                                            \
      "  testl %eax, %eax\n"                                              \
      "  jne 2f\n"                                                        \
      "1:\n"                                                              \
      FORKSIGHT_ASM_LOAD(forksight_t_slot, rcx)                           \
      "  leaq 32(%rdx), %r9\n"                                            \
      "  cmpq %rdx, (%rcx)\n"                                             \
      "  jne 6f\n"                                                        \
      "  movq %r9, (%rcx)\n"                                              \
      "  cmpq %rsi, 16(%rdx)\n"                                           \
      "  jne 4f\n"                                                        \
      "  ret\n"                                                           \
      "2:\n"                                                              \
      "  cmpl $130, %eax\n"                                               \
      "  je 1b\n"                                                         \
      "  ret\n"                                                           \
      "5:\n"                                                              \
      "  pushq %rdi\n"                                                    \
      "  .cfi_adjust_cfa_offset 8\n"                                      \
      "  call *forksight_g_next+forksight_next_mutex_lock(%rip)\n"        \
      "  popq %rdi\n"                                                     \
      "  .cfi_adjust_cfa_offset -8\n"                                     \
      "  leaq 8(%rsp), %rsi\n"                                            \
      "  testl %eax, %eax\n"                                              \
      "  je 6f\n"                                                         \
      "  cmpl $130, %eax\n"                                               \
      "  jne 7f\n"                                                        \
      "6:\n"                                                              \
      FORKSIGHT_ASM_LOAD(forksight_t_slot, rcx)                           \
      "  movq (%rcx), %rdx\n"                                             \
      "  testl $2047, %edx\n"                                             \
      "  jne 4f\n"                                                        \
      "  incl forksight_overflow(%rcx)\n"                                 \
      "7:\n"                                                              \
      "  ret\n"                                                           \
      FORKSIGHT_ASM_PUSH                                                  \
      "3:\n"                                                              \
      "  pushq %rbp\n"                                                    \
      "  .cfi_adjust_cfa_offset 8\n"                                      \
      "  .cfi_rel_offset %rbp, 0\n"                                       \
      "  movq %rsp, %rbp\n"                                               \
      "  movq %rbp, %rsi\n"                                               \
      "  call forksight_slow_pthread_mutex_lock\n"                        \
      "  popq %rbp\n"                                                     \
      "  .cfi_adjust_cfa_offset -8\n"                                     \
      "  .cfi_restore %rbp\n"                                             \
      "  ret\n"                                                           \
      "  .cfi_endproc\n"                                                  \
      "  .size pthread_mutex_lock, .-pthread_mutex_lock\n"                \
      ".popsection\n")

// clang-format on
