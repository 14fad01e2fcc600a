// Forks while the list of locks that a thread holds is changing.
//   moves    An unlock moves entries of the list. The trap flag of the processor raises SIGTRAP after each instruction
//            of the unlock, and the signal handler forks. At each fork the two locks that stay held must be recorded
//            once, with the place where they were taken.
//   handler  A prepare handler releases a lock that was taken before the fork, and takes a second one. Another handler
//            waits for a third lock. The second lock must be recorded as held by the handlers.
//   taken    A lock is taken. SIGTRAP is raised after each instruction of that call, and the signal handler forks. The
//            child completes the call, too. Then it starts a thread and forks. If libc had not yet taken the lock at
//            the first of these forks, the second one must record the lock once, as held. Another thread of the first
//            process holds a lock, so every lock of the child takes the slow path.
//   nested   A prepare handler calls fork(). The trace must record both forks as forks by fork().
// The program prints the addresses of the locks that the trace must record. check_held.py reads the trace.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static pthread_mutex_t g_first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t g_second = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t g_third = PTHREAD_MUTEX_INITIALIZER;
static volatile int g_ready;

static void fork_once(void) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) abort();
}

static void* idle(void* unused) {
  __atomic_store_n(&g_ready, 1, __ATOMIC_RELEASE);
  pause();
  return unused;
}

static void start(void* (*run)(void*)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, NULL) != 0) abort();
  while (!__atomic_load_n(&g_ready, __ATOMIC_ACQUIRE)) sched_yield();
}

static void on_trap(int number) {
  (void)number;
  fork_once();
}

static void set_trap_flag(void) { __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc"); }
static void clear_trap_flag(void) { __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc"); }

static void moves(void) {
  const struct sigaction action = {.sa_handler = on_trap};
  sigaction(SIGTRAP, &action, NULL);
  start(idle);
  pthread_mutex_lock(&g_first);
  pthread_mutex_lock(&g_second);
  pthread_mutex_lock(&g_third);
  fork_once();
  set_trap_flag();
  pthread_mutex_unlock(&g_first);
  clear_trap_flag();
  printf("%p %p\n", (void*)&g_second, (void*)&g_third);
}

static volatile int g_is_child;
static volatile int g_forks_before; /* forks at which libc had not yet taken the lock */

static void split_on_trap(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)info;
  if (g_is_child) return;
  int status = 0;
  if (g_first.__data.__lock == 0) ++g_forks_before;
  const pid_t child = fork();
  if (child < 0) abort();
  if (child == 0) {
    g_is_child = 1;
    ((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100L;
  } else if (waitpid(child, &status, 0) != child || status != 0) {
    abort();
  }
}

static void* hold_and_idle(void* unused) {
  pthread_mutex_lock(&g_third);
  return idle(unused);
}

static void taken(void) {
  const struct sigaction action = {.sa_sigaction = split_on_trap, .sa_flags = SA_SIGINFO};
  sigaction(SIGTRAP, &action, NULL);
  start(hold_and_idle);
  set_trap_flag();
  pthread_mutex_lock(&g_first);
  clear_trap_flag();
  if (g_is_child) {
    g_ready = 0;
    start(idle);
    fork_once();
    _exit(0);
  }
  printf("%p %d\n", (void*)&g_first, g_forks_before);
}

static void* hold_third(void* unused) {
  pthread_mutex_lock(&g_third);
  __atomic_store_n(&g_ready, 1, __ATOMIC_RELEASE);
  // The loop ends when the handler waits for the lock: the word of a mutex with a waiter is 2.
  while (__atomic_load_n(&g_third.__data.__lock, __ATOMIC_ACQUIRE) != 2) sched_yield();
  pthread_mutex_unlock(&g_third);
  pause();
  return unused;
}

static void swap_locks(void) {
  pthread_mutex_unlock(&g_first);
  pthread_mutex_lock(&g_second);
}
static void wait_for_third(void) {
  pthread_mutex_lock(&g_third);
  pthread_mutex_unlock(&g_third);
}

static void handler(void) {
  // Prepare handlers run in reverse order.
  pthread_atfork(wait_for_third, NULL, NULL);
  pthread_atfork(swap_locks, NULL, NULL);
  start(hold_third);
  pthread_mutex_lock(&g_first);
  fork_once();
  printf("%p\n", (void*)&g_second);
}

static void fork_in_fork(void) {
  static int depth;
  if (depth++ == 0) fork_once();
  --depth;
}

static void nested(void) {
  pthread_atfork(fork_in_fork, NULL, NULL);
  start(idle);
  fork_once();
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "moves") == 0) moves();
  if (argc == 2 && strcmp(argv[1], "taken") == 0) taken();
  if (argc == 2 && strcmp(argv[1], "handler") == 0) handler();
  if (argc == 2 && strcmp(argv[1], "nested") == 0) nested();
  return 0;
}
