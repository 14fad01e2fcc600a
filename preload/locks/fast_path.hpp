// The hooks of the commonest lock operations: their fast path in assembly, their slow path a C++ function.
//
// A pair of uncontended operations takes some twenty cycles, most of them in the two atomic instructions of libc, each
// of which waits for all stores before it. So what counts here is the number of stores, and a compiler adds some for a
// frame pointer and saved registers. Written out, an acquisition stores four words of facts and `top`, a release only
// `top`. Where two threads contend, what counts is the time in between: hence the facts are stored before the lock is
// asked for, into the entry above the innermost, and only `top` after it. Registers are as at the call: unwinding and
// cancellation pass as through a tail call.
//
// An entry becomes visible with `top`, whole, and nothing is cleared on release. A signal handler that locks before
// `top` is stored uses the same entry and gives it back; so the entry is looked at after the store: `sp` was stored
// first and no handler's is equal, hence if it is still there, so is the rest. The same in C++: push_held.
#pragma once

#include <cstddef>

#include "loader/next.hpp"
#include "record/slots.hpp"

// Assembly outside of a function cannot use the language's constants: what it has in figures is compared here, what
// depends on the list of hooks becomes a symbol of the assembler, by a function that nobody calls.
static_assert(offsetof(forksight::Slot, top) == 0);
static_assert(offsetof(forksight::Slot, held) == 2048 && forksight::kHeldArrayBytes == 2048);
static_assert(sizeof(forksight::HeldLock) == 32 && offsetof(forksight::HeldLock, lock) == 0);
static_assert(offsetof(forksight::HeldLock, site) == 8 && offsetof(forksight::Site, pc) == 0);
static_assert(offsetof(forksight::Site, sp) == 8 && offsetof(forksight::Site, fp) == 16);
static_assert(forksight::kKindShift == 56);

// clang-format off

#define FORKSIGHT_ASM_CONSTANTS(name, kind)                                                                   \
  __attribute__((used, noinline, cold)) static void forksight_constants_##name() {                            \
    asm volatile(".set forksight_next_" #name ", %c0\n\t.set forksight_tag_" #name ", (%c1) << 56\n"                 \
                 "\t.set forksight_overflow, %c2" ::"i"(offsetof(::forksight::Next, name)),                   \
                 "i"(static_cast<int>(kind) - 1), "i"(offsetof(::forksight::Slot, overflow)));      \
  }

#define FORKSIGHT_ASM_FUNCTION(name, body)                                                                    \
  asm(".pushsection .text.forksight_hooks,\"ax\",@progbits\n"                                                 \
      "  .p2align 6\n"                                                                                        \
      FORKSIGHT_SYMVER_##name "  .globl " #name "\n"                                                                                  \
      "  .type " #name ",@function\n" #name ":\n"                                                             \
      "  .cfi_startproc\n" body                                                                               \
      "  .cfi_endproc\n"                                                                                      \
      "  .size " #name ", .-" #name "\n"                                                                      \
      ".popsection\n")

#define FORKSIGHT_ASM_LOAD(variable, to)              \
  "  movq " #variable "@gottpoff(%rip), %" #to "\n"   \
  "  movq %fs:(%" #to "), %" #to "\n"

// The pushed word keeps the lock, and the stack aligned.
#define FORKSIGHT_ASM_CALL_NEXT(name)                      \
  "  pushq %rdi\n"                                         \
  "  .cfi_adjust_cfa_offset 8\n"                           \
  "  call *forksight_g_next+forksight_next_" #name "(%rip)\n" \
  "  popq %rdi\n"                                          \
  "  .cfi_adjust_cfa_offset -8\n"

#define FORKSIGHT_ASM_TAG(name)                 \
  "  movabsq $forksight_tag_" #name ", %r8\n"   \
  "  orq %r8, %rdi\n"

// r8: the lock, tagged.
#define FORKSIGHT_ASM_TAG_R8(name)              \
  "  movabsq $forksight_tag_" #name ", %r8\n"   \
  "  orq %rdi, %r8\n"

// rcx: slot, rdx: entry, rdi: tagged lock. Keeps eax.
#define FORKSIGHT_ASM_PUSH                      \
  "  leaq 8(%rsp), %rsi\n"                      \
  "4:\n"                                        \
  "  movq %rsi, 16(%rdx)\n"                     \
  "  movq %rdi, (%rdx)\n"                       \
  "  movq %rbp, 24(%rdx)\n"                     \
  "  movq (%rsp), %r8\n"                        \
  "  movq %r8, 8(%rdx)\n"                       \
  "  leaq 32(%rdx), %r9\n"                      \
  "  movq %r9, (%rcx)\n"                        \
  "  cmpq %rsi, 16(%rdx)\n"                     \
  "  jne 4b\n"                                  \
  "  ret\n"

// Calls a function (lock, Frame) and returns what it does; the frame is laid out as a compiler's.
#define FORKSIGHT_ASM_WITH_FRAME(function)      \
  "  pushq %rbp\n"                              \
  "  .cfi_adjust_cfa_offset 8\n"                \
  "  .cfi_rel_offset %rbp, 0\n"                 \
  "  movq %rsp, %rbp\n"                         \
  "  movq %rbp, %rsi\n"                         \
  "  call " function "\n"                       \
  "  popq %rbp\n"                               \
  "  .cfi_adjust_cfa_offset -8\n"               \
  "  .cfi_restore %rbp\n"                       \
  "  ret\n"

// rdx: the entry above the innermost, which is filled before the lock is taken and shown by `top` after it: what a lock
// costs its other users is the time that it is held, and every instruction in between makes that longer.
#define FORKSIGHT_ASM_FILL(tag)                 \
  "  leaq 8(%rsp), %rsi\n"                      \
  "  movq %rsi, 16(%rdx)\n"                     \
  tag                                           \
  "  movq %r8, (%rdx)\n"                        \
  "  movq %rbp, 24(%rdx)\n"                     \
  "  movq (%rsp), %r8\n"                        \
  "  movq %r8, 8(%rdx)\n"

// Defines the hook NAME(lock), which acquires a lock of `kind` by the real NAME; `tag` leaves the tagged lock in r8. What
// comes at a thread's first lock, and in a child that watches orphans, is `extern "C" int forksight_slow_NAME(T* lock,
// Frame frame)`. The slot is looked up twice: a signal handler may fork in between, and the child have no fast path. One
// that locks uses the filled entry, and is seen as above; one that leaves a lock held has moved `top`, and the entry is
// written anew.
#define FORKSIGHT_ACQUIRE_TAGGED(name, kind, owner_died, tag)                      \
  FORKSIGHT_ASM_CONSTANTS(name, kind)                                                 \
  FORKSIGHT_ASM_FUNCTION(name,                                                        \
                         FORKSIGHT_ASM_LOAD(forksight_t_fast, rax)                    \
                         "  testq %rax, %rax\n"                                       \
                         "  je 3f\n"                                                  \
                         "  movq (%rax), %rdx\n"                                      \
                         "  testl $2047, %edx\n"                                      \
                         "  je 5f\n"                                                  \
                         FORKSIGHT_ASM_FILL(tag)                                      \
                         "  pushq %rdi\n"                                             \
                         "  .cfi_adjust_cfa_offset 8\n"                               \
                         "  pushq %rdx\n"                                             \
                         "  .cfi_adjust_cfa_offset 8\n"                               \
                         "  subq $8, %rsp\n"                                          \
                         "  .cfi_adjust_cfa_offset 8\n"                               \
                         "  call *forksight_g_next+forksight_next_" #name "(%rip)\n"  \
                         "  movq 8(%rsp), %rdx\n"                                     \
                         "  movq 16(%rsp), %rdi\n"                                    \
                         "  addq $24, %rsp\n"                                         \
                         "  .cfi_adjust_cfa_offset -24\n"                             \
                         "  leaq 8(%rsp), %rsi\n"                                     \
                         "  testl %eax, %eax\n"                                       \
                         "  jne 2f\n"                                                 \
                         "1:\n"                                                       \
                         FORKSIGHT_ASM_LOAD(forksight_t_fast, rcx)                    \
                         "  testq %rcx, %rcx\n"                                       \
                         "  je 7f\n"                                                  \
                         "  leaq 32(%rdx), %r9\n"                                     \
                         "  cmpq %rdx, (%rcx)\n"                                      \
                         "  jne 6f\n"                                                 \
                         "  movq %r9, (%rcx)\n"                                       \
                         "  cmpq %rsi, 16(%rdx)\n"                                    \
                         "  jne 8f\n"                                                 \
                         "  ret\n"                                                    \
                         "2:\n"                                                       \
                         "  cmpl $" #owner_died ", %eax\n"                            \
                         "  je 1b\n"                                                  \
                         "  ret\n"                                                    \
                         "5:\n"                                                       \
                         FORKSIGHT_ASM_CALL_NEXT(name)                                \
                         "  testl %eax, %eax\n"                                       \
                         "  je 6f\n"                                                  \
                         "  cmpl $" #owner_died ", %eax\n"                            \
                         "  jne 7f\n"                                                 \
                         "6:\n"                                                       \
                         FORKSIGHT_ASM_LOAD(forksight_t_fast, rcx)                    \
                         "  testq %rcx, %rcx\n"                                       \
                         "  je 7f\n"                                                  \
                         "  movq (%rcx), %rdx\n"                                      \
                         "  testl $2047, %edx\n"                                      \
                         "  jne 8f\n"                                                 \
                         "  incl forksight_overflow(%rcx)\n"                          \
                         "7:\n"                                                       \
                         "  ret\n"                                                    \
                         "8:\n"                                                       \
                         tag                                                          \
                         "  movq %r8, %rdi\n"                                         \
                         FORKSIGHT_ASM_PUSH                                           \
                         "3:\n"                                                       \
                         FORKSIGHT_ASM_WITH_FRAME("forksight_slow_" #name))

#define FORKSIGHT_ACQUIRE_HOOK(name, kind) FORKSIGHT_ACQUIRE_TAGGED(name, kind, 0, FORKSIGHT_ASM_TAG_R8(name))
// A mutex is tagged 0. EOWNERDEAD is acquired, too.
#define FORKSIGHT_ACQUIRE_MUTEX_HOOK(name) \
  FORKSIGHT_ACQUIRE_TAGGED(name, ::forksight::trace::LockKind::kMutex, 130, "  movq %rdi, %r8\n")

// The same for a spinlock. Where the real function is seen to be glibc's, its first attempt is made here: the call alone
// would cost a tenth of the pair. One that fails goes to the real function, whose loop begins with another attempt. The
// entry is written after it: what its being filled before costs is more than a pair of a few nanoseconds can hide.
#define FORKSIGHT_ACQUIRE_SPIN_HOOK(name)                                             \
  FORKSIGHT_ASM_CONSTANTS(name, ::forksight::trace::LockKind::kSpinlock)              \
  FORKSIGHT_ASM_FUNCTION(name,                                                        \
                         FORKSIGHT_ASM_LOAD(forksight_t_fast, rax)                    \
                         "  testq %rax, %rax\n"                                       \
                         "  je 3f\n"                                                  \
                         "  cmpb $0, forksight_g_spin_is_glibcs(%rip)\n"              \
                         "  je 7f\n"                                                  \
                         "  lock decl (%rdi)\n"                                       \
                         "  jne 7f\n"                                                 \
                         "  xorl %eax, %eax\n"                                        \
                         "1:\n"                                                       \
                         FORKSIGHT_ASM_LOAD(forksight_t_fast, rcx)                    \
                         "  testq %rcx, %rcx\n"                                       \
                         "  je 6f\n"                                                  \
                         "  movq (%rcx), %rdx\n"                                      \
                         "  testl $2047, %edx\n"                                      \
                         "  je 5f\n"                                                  \
                         FORKSIGHT_ASM_TAG(name) FORKSIGHT_ASM_PUSH                   \
                         "7:\n"                                                       \
                         FORKSIGHT_ASM_CALL_NEXT(name)                                \
                         "  testl %eax, %eax\n"                                       \
                         "  je 1b\n"                                                  \
                         "  ret\n"                                                    \
                         "5:\n"                                                       \
                         "  incl forksight_overflow(%rcx)\n"                          \
                         "6:\n"                                                       \
                         "  ret\n"                                                    \
                         "3:\n"                                                       \
                         FORKSIGHT_ASM_WITH_FRAME("forksight_slow_" #name))

// The same for a lock that one thread may take many times without giving it back: one entry (push_held_once), by
// `extern "C" int forksight_once_NAME(T* lock, Frame frame)`, which returns 0. Its first word is its value, and where that
// is 0 the call may block: that comes by the slow way, too, which notes the wait.
#define FORKSIGHT_ACQUIRE_ONCE_HOOK(name, kind)                                       \
  FORKSIGHT_ASM_CONSTANTS(name, kind)                                                 \
  FORKSIGHT_ASM_FUNCTION(name,                                                        \
                         FORKSIGHT_ASM_LOAD(forksight_t_fast, rax)                    \
                         "  testq %rax, %rax\n"                                       \
                         "  je 3f\n"                                                  \
                         "  cmpl $0, (%rdi)\n"                                        \
                         "  je 3f\n"                                                  \
                         FORKSIGHT_ASM_CALL_NEXT(name)                                \
                         "  testl %eax, %eax\n"                                       \
                         "  jne 2f\n"                                                 \
                         FORKSIGHT_ASM_LOAD(forksight_t_fast, rcx)                    \
                         "  testq %rcx, %rcx\n"                                       \
                         "  je 6f\n"                                                  \
                         "  movq (%rcx), %rdx\n"                                      \
                         "  leaq 2080(%rcx), %r8\n"                                   \
                         "  cmpq %r8, %rdx\n"                                         \
                         "  jne 5f\n"                                                 \
                         FORKSIGHT_ASM_TAG(name)                                      \
                         FORKSIGHT_ASM_PUSH                                           \
                         "2:\n"                                                       \
                         "6:\n"                                                       \
                         "  ret\n"                                                    \
                         "5:\n"                                                       \
                         FORKSIGHT_ASM_WITH_FRAME("forksight_once_" #name)            \
                         "3:\n"                                                       \
                         FORKSIGHT_ASM_WITH_FRAME("forksight_slow_" #name))

// Defines the hook NAME(lock), which forgets the lock and releases it by the real NAME. If it is not the innermost
// entry: a jump to `extern "C" int forksight_slow_NAME(T* lock)`. `is_it` leaves 0 where rcx, the tag of that entry, is of
// the lock in rdi.
#define FORKSIGHT_RELEASE_TAGGED(name, is_it)                                         \
  FORKSIGHT_ASM_CONSTANTS(name, ::forksight::trace::LockKind::kMutex)                 \
  FORKSIGHT_ASM_FUNCTION(name,                                                        \
                         FORKSIGHT_ASM_LOAD(forksight_t_fast, rax)                    \
                         "  testq %rax, %rax\n"                                       \
                         "  je 3f\n"                                                  \
                         "  movq (%rax), %rdx\n"                                      \
                         "  movq -32(%rdx), %rcx\n"                                   \
                         "  xorq %rdi, %rcx\n"                                        \
                         is_it                                                        \
                         "  jne 3f\n"                                                 \
                         "  subq $32, %rdx\n"                                         \
                         "  movq %rdx, (%rax)\n"                                      \
                         "  jmp *forksight_g_next+forksight_next_" #name "(%rip)\n"   \
                         "3:\n"                                                       \
                         "  jmp forksight_slow_" #name "\n")

// As is_libc_lock_at(): bits 56 to 58 do not count. A mutex is tagged 0.
#define FORKSIGHT_RELEASE_HOOK(name) FORKSIGHT_RELEASE_TAGGED(name, "  rolq $5, %rcx\n  shlq $3, %rcx\n")
#define FORKSIGHT_RELEASE_MUTEX_HOOK(name) FORKSIGHT_RELEASE_TAGGED(name, "")

// clang-format on
