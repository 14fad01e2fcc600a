/* syscall(): any number of arguments, errors, futexes of each kind, and calls that return twice or on another stack. */
#include "probe.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_uint g_word;
static atomic_uint g_other;

PROBE(results_and_errors) {
  SHOW(syscall(SYS_getpid) == getpid());
  SHOW(syscall(SYS_gettid) == gettid());
  SHOW(syscall(SYS_close, -1));
  SHOW(syscall(100000));
  SHOW(syscall(-1L));
  SHOW(syscall(SYS_read, -1, NULL, 0));
  SHOW(syscall(SYS_openat, AT_FDCWD, "/does/not/exist", O_RDONLY, 0));
  SHOW(syscall(SYS_getppid) == getppid());
}

/* All six arguments must reach the kernel. The caller passes the last one on the stack. */
PROBE(six_arguments) {
  char path[] = "/proc/self/exe";
  char head[4] = "";
  char same[4] = "";
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const long address = syscall(SYS_mmap, NULL, page, PROT_READ, MAP_PRIVATE, fd, page);
  if (address != -1) memcpy(head, (const void*)address, sizeof head);
  SHOW(syscall(SYS_pread64, fd, same, sizeof same, page));
  SHOW(memcmp(head, same, sizeof head));
  SHOW(syscall(SYS_munmap, address, page));
  SHOW(syscall(SYS_mmap, NULL, page, PROT_READ, MAP_PRIVATE, fd, 1));
  close(fd);
}

PROBE(futexes_that_do_not_wait) {
  atomic_store(&g_word, 1);
  SHOW(syscall(SYS_futex, &g_word, FUTEX_WAIT, 0, NULL, NULL, 0));
  SHOW(syscall(SYS_futex, &g_word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0));
  SHOW(syscall(SYS_futex, &g_word, FUTEX_WAIT_BITSET_PRIVATE, 1, NULL, NULL, 0)); /* no bits: EINVAL */
  SHOW(syscall(SYS_futex, &g_word, FUTEX_WAIT_BITSET, 3, NULL, NULL, FUTEX_BITSET_MATCH_ANY));
  SHOW(syscall(SYS_futex, 1L, FUTEX_WAIT, 0, NULL, NULL, 0));
  SHOW(syscall(SYS_futex, 4L, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
  SHOW(syscall(SYS_futex, &g_word, FUTEX_WAKE, 1, NULL, NULL, 0));
  SHOW(syscall(SYS_futex, &g_word, FUTEX_WAKE_PRIVATE, 100, NULL, NULL, 0));
  SHOW(syscall(SYS_futex, &g_word, FUTEX_REQUEUE_PRIVATE, 1, 1L, &g_other, 0));
  SHOW(syscall(SYS_futex, &g_word, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1L, &g_other, 7));
  SHOW(syscall(SYS_futex, &g_word, FUTEX_WAKE_OP_PRIVATE, 1, 1L, &g_other,
               FUTEX_OP(FUTEX_OP_SET, 0, FUTEX_OP_CMP_EQ, 0)));
  SHOW(syscall(SYS_futex, &g_word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
  SHOW(syscall(SYS_futex, &g_word, 99, 0, NULL, NULL, 0));
}

PROBE(futexes_with_a_deadline) {
  struct timespec moment = {.tv_nsec = 20000000};
  struct timespec bad = {.tv_nsec = -1};
  atomic_store(&g_word, 0);
  SHOW_TIMED(syscall(SYS_futex, &g_word, FUTEX_WAIT, 0, &moment, NULL, 0), 20);
  SHOW_TIMED(syscall(SYS_futex, &g_word, FUTEX_WAIT_PRIVATE, 0, &moment, NULL, 0), 20);
  moment = in_ms(CLOCK_MONOTONIC, 20);
  SHOW_TIMED(syscall(SYS_futex, &g_word, FUTEX_WAIT_BITSET_PRIVATE, 0, &moment, NULL, 1), 20);
  moment = in_ms(CLOCK_REALTIME, 20);
  SHOW_TIMED(syscall(SYS_futex, &g_word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &moment, NULL, 1), 20);
  SHOW(syscall(SYS_futex, &g_word, FUTEX_WAIT, 0, &bad, NULL, 0));
  SHOW(syscall(SYS_futex, &g_word, FUTEX_WAIT, 0, 1L, NULL, 0));
}

static void clear(void) { atomic_store(&g_word, 0); }
static int wait_for_word(void) {
  int seen = 0;
  while (atomic_load(&g_word) == 0 && seen == 0) {
    seen = (int)syscall(SYS_futex, &g_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
  }
  return seen;
}
static void set_word(void) {
  atomic_store(&g_word, 1);
  syscall(SYS_futex, &g_word, FUTEX_WAKE_PRIVATE, 100, NULL, NULL, 0);
}
static void show_word(void) { SHOW((int)atomic_load(&g_word)); }

PROBE(a_wait_that_blocks) {
  static const struct Blocking wait = {"futex", clear, wait_for_word, set_word, show_word, NULL};
  show_blocking(&wait);
}

/* Only a signal ends a wait in a child that has no other thread. */
static void on_alarm(int number) { (void)number; }
static void wait_alone(void) {
  const struct sigaction action = {.sa_handler = on_alarm};
  struct sigaction old;
  sigset_t none;
  sigset_t mask;
  sigemptyset(&none);
  atomic_store(&g_word, 0);
  sigaction(SIGALRM, &action, &old);
  sigprocmask(SIG_SETMASK, &none, &mask);
  for (int i = 0; i < 3; ++i) {
    ualarm(20000, 0);
    SHOW(syscall(SYS_futex, &g_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
  }
  sigprocmask(SIG_SETMASK, &mask, NULL);
  sigaction(SIGALRM, &old, NULL);
}
PROBE(a_wait_in_a_child) { in_child(wait_alone); }

static void show_end(long child) {
  int status = -1;
  if (child <= 0 || waitpid((pid_t)child, &status, 0) != child) say("  no child: %ld, errno %d", child, errno);
  say("  ended with status %x", (unsigned)status);
}

/* These calls return twice: in the parent and in the child. */
PROBE(forks_of_the_kernel) {
  long child = syscall(SYS_fork);
  if (child == 0) syscall(SYS_exit_group, 3);
  show_end(child);
  child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
  if (child == 0) syscall(SYS_exit_group, 4);
  show_end(child);
}

/* In the child, clone() returns on a new stack, to the address that lies on top of that stack. So clone() does not
 * return to its caller in the child. */
static void end_there(void) {
  syscall(SYS_exit_group, 5);
  abort();
}
PROBE(clone_with_a_stack_of_its_own) {
  enum { kBytes = 64 << 10 };
  char* const stack = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) abort();
  /* end_there() expects a return address on its stack. The word after `*top` takes that place, and is never used. */
  uintptr_t* const top = (uintptr_t*)(void*)(stack + kBytes - 64);
  *top = (uintptr_t)end_there;
  show_end(syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, top, NULL, NULL, 0));
  munmap(stack, kBytes);
}
