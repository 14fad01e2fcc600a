/* A program without any libc. It waits in read() for a byte that only its own handler of signal 32 can write. A program
 * with glibc cannot handle this signal, because glibc reserves it.
 *
 * Without an argument the program has the handler. With an argument it has no handler, and nothing can end its wait. */
#include <stddef.h>

enum { kRead = 0, kWrite = 1, kSigaction = 13, kSigreturn = 15, kPipe = 22, kExit = 231 }; /* x86-64 system calls */
enum { kSignal = 32, kRestorer = 0x04000000, kRestart = 0x10000000, kWell = 7, kBroken = 1 };

/* The kernel's own struct sigaction (arch/x86/include/uapi/asm/signal.h). */
struct action {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)(void);
  unsigned long mask;
};

static int ends[2];

static long call(long number, long a, long b, long c, long d) {
  long result = number;
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
  return result;
}

static void write_to_pipe(int signal) {
  (void)signal;
  call(kWrite, ends[1], (long)"x", 1, 0);
}

__attribute__((naked)) static void restore(void) { __asm__("mov %0, %%eax\n\tsyscall" ::"i"(kSigreturn)); }

__attribute__((used, noreturn)) static void run(const long* stack) {
  const int has_handler = stack[0] == 1; /* argc */
  char byte = 0;
  long got = call(kPipe, (long)ends, 0, 0, 0);
  struct action action = {write_to_pipe, kRestorer | kRestart, restore, 0};
  if (got == 0 && has_handler) got = call(kSigaction, kSignal, (long)&action, 0, sizeof action.mask);
  if (got == 0) got = call(kWrite, 1, (long)"x", 1, 0);
  if (got == 1) got = call(kRead, ends[0], (long)&byte, 1, 0);
  call(kExit, got == 1 && byte == 'x' ? kWell : kBroken, 0, 0, 0);
  __builtin_unreachable();
}

__attribute__((naked, noreturn)) void _start(void) { __asm__("mov %rsp, %rdi\n\tand $-16, %rsp\n\tcall run"); }
