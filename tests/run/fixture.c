/* A program for the tests. Its first argument, the mode, says whether it hangs, only waits, or ends. In most modes, the
 * program writes one byte to standard output just before its processes make the calls in which they wait. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

uint32_t word = 1;

void say_ready(void) {
  if (write(STDOUT_FILENO, "r", 1) != 1) _exit(99);
}

void wait_on(uint32_t* address, int operation, const struct timespec* timeout) {
  for (;;) syscall(SYS_futex, address, operation, *address, timeout, NULL, FUTEX_BITSET_MATCH_ANY);
}

void hang(void) { wait_on(&word, FUTEX_WAIT_PRIVATE, NULL); }

static void* hang_thread(void* unused) {
  (void)unused;
  hang();
  return NULL;
}

pid_t fork_hung(void) {
  const pid_t child = fork();
  if (child == 0) hang();
  return child;
}

static void pass(int signal) { (void)signal; }

static void dead(void) {
  say_ready();
  hang();
}

static void dead_threads(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, hang_thread, NULL);
  say_ready();
  pthread_join(threads[0], NULL);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void* lock_twice(void* unused) {
  pthread_mutex_lock(&held);
  pthread_mutex_lock(&held);
  return unused;
}

/* One thread locks its own mutex twice, and hangs. A second thread joins this thread, and hangs too. The first thread
 * of the process waits for signals. */
static void* join_it(void* thread) {
  pthread_join(*(pthread_t*)thread, NULL);
  return NULL;
}

static void partly_dead(void) {
  static pthread_t locker;
  pthread_t joiner;
  pthread_create(&locker, NULL, lock_twice, NULL);
  pthread_create(&joiner, NULL, join_it, &locker);
  say_ready();
  for (;;) pause();
}

static void handle(int signal) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = pass;
  sigaction(signal, &action, NULL);
}

static void dead_caught(void) {
  handle(SIGUSR1);
  dead();
}

/* The thread that goes on could send SIGUSR1 to a thread that hangs. */
static void partly_dead_caught(void) {
  handle(SIGUSR1);
  partly_dead();
}

/* Makes a timer that sends `signal` in an hour. */
static void send_later(int signal) {
  struct sigevent event;
  const struct itimerspec hour = {{0, 0}, {3600, 0}};
  timer_t timer;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = signal;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &hour, NULL) != 0) _exit(99);
}

/* The child hangs, until a timer ends it. Its parent waits for it. */
static void parent_of_timed(void) {
  if (fork() == 0) {
    send_later(SIGTERM);
    dead();
  }
  wait(NULL);
}

/* The child reads from its own pipe, until a timer ends it. Its parent reads from a pipe of the child. */
static void reader_of_timed(void) {
  int ends[2];
  char byte;
  if (pipe(ends) != 0) _exit(99);
  if (fork() == 0) {
    int own[2];
    send_later(SIGTERM);
    if (pipe(own) != 0) _exit(99);
    say_ready();
    if (read(own[0], &byte, 1) < 0) _exit(98);
  }
  close(ends[1]);
  if (read(ends[0], &byte, 1) < 0) _exit(98);
}

/* A timer sends SIGTRAP, and a handler runs. */
static void timed_trap(void) {
  handle(SIGTRAP);
  send_later(SIGTRAP);
  dead();
}

static void* leave_others(void* leader) {
  pthread_join(*(pthread_t*)leader, NULL);
  say_ready();
  hang();
  return NULL;
}

static void leader_gone(void) {
  static pthread_t self;
  self = pthread_self();
  pthread_t thread;
  pthread_create(&thread, NULL, leave_others, &self);
  pthread_exit(NULL);
}

static void plain_private(void) {
  say_ready();
  wait_on(&word, FUTEX_WAIT, NULL);
}

static void timed(void) {
  const struct timespec hour = {3600, 0};
  say_ready();
  wait_on(&word, FUTEX_WAIT_PRIVATE, &hour);
}

static char sibling_stack[65536] __attribute__((aligned(16)));

static int run_sibling(void* unused) {
  (void)unused;
  for (;;) pause();
  return 0;
}

/* Hangs. A process that shares this memory, but is not a thread of this process, could wake it. */
static void vm_sibling(void) {
  clone(run_sibling, sibling_stack + sizeof sibling_stack, CLONE_VM | SIGCHLD, NULL);
  dead();
}

/* When its child ends, this process receives SIGUSR1 instead of SIGCHLD. */
static int sleep_long(void* unused) {
  (void)unused;
  for (;;) pause();
}

static void exit_signal(void) {
  handle(SIGUSR1);
  clone(sleep_long, sibling_stack + sizeof sibling_stack, SIGUSR1, NULL);
  dead();
}

/* The process that shares this memory takes the mutex and keeps it. The mutex then has the tid of this thread as its
 * owner, because glibc takes the tid from the thread structure. */
static int take_and_keep(void* unused) {
  (void)unused;
  pthread_mutex_lock(&held);
  say_ready();
  for (;;) pause();
}

static void vm_owner(void) {
  clone(take_and_keep, sibling_stack + sizeof sibling_stack, CLONE_VM | SIGCHLD, NULL);
  while (__atomic_load_n((int*)&held, __ATOMIC_ACQUIRE) == 0) sched_yield();
  pthread_mutex_lock(&held);
}

/* The same, but the thread that hangs is not the only one. */
static void* lock_held(void* unused) {
  pthread_mutex_lock(&held);
  return unused;
}

static void vm_owner_of_thread(void) {
  pthread_t thread;
  clone(take_and_keep, sibling_stack + sizeof sibling_stack, CLONE_VM | SIGCHLD, NULL);
  while (__atomic_load_n((int*)&held, __ATOMIC_ACQUIRE) == 0) sched_yield();
  pthread_create(&thread, NULL, lock_held, NULL);
  pthread_join(thread, NULL);
}

/* A read() from a pipe with a byte writes to memory that a userfaultfd supplies. So the call sleeps until another
 * thread or process supplies the page. Ends with status 77 if the kernel refuses the userfaultfd. */
static void read_into_userfault(void) {
  struct uffdio_api api = {.api = UFFD_API};
  const int fault = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  char* const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int ends[2];
  if (fault < 0 || page == MAP_FAILED || ioctl(fault, UFFDIO_API, &api) != 0) _exit(77);
  struct uffdio_register range = {.range = {(uint64_t)(uintptr_t)page, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  if (ioctl(fault, UFFDIO_REGISTER, &range) != 0 || pipe(ends) != 0 || write(ends[1], "x", 1) != 1) _exit(77);
  if (fork() == 0) {
    for (;;) pause();
  }
  say_ready();
  if (read(ends[0], page, 1) < 0) _exit(98);
}

static void* run_poller(void* unused) {
  (void)unused;
  const int poller = epoll_create1(0);
  struct epoll_event event;
  say_ready();
  for (;;) epoll_wait(poller, &event, 1, -1);
  return NULL;
}

static void idle_epoll(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, run_poller, NULL);
  hang();
}

static void idle_sleep(void) {
  say_ready();
  for (;;) sleep(3600);
}

static void parent(void) {
  const pid_t child = fork_hung();
  say_ready();
  waitpid(child, NULL, 0);
}

static void parent_id(void) {
  const pid_t child = fork_hung();
  siginfo_t info;
  say_ready();
  waitid(P_PID, (id_t)child, &info, WEXITED);
}

static void parent_any(void) {
  fork_hung();
  fork_hung();
  say_ready();
  wait(NULL);
}

static void parent_mixed(void) {
  fork_hung();
  if (fork() == 0) {
    for (;;) pause();
  }
  say_ready();
  wait(NULL);
}

/* The parent adopts its descendants. Its child waits for it. A descendant could end, and so end the parent's wait. */
static void parent_adopting(void) {
  int ends[2];
  char byte;
  if (pipe(ends) != 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) _exit(99);
  if (fork() == 0) {
    close(ends[1]);
    if (fork() == 0) {
      close(ends[0]);
      if (fork() == 0) {
        for (;;) pause();
      }
      for (;;) pause();
    }
    say_ready();
    if (read(ends[0], &byte, 1) < 0) _exit(98);
  }
  close(ends[0]);
  wait(NULL);
  if (write(ends[1], "x", 1) != 1) _exit(98);
}

static void grandparent(void) {
  if (fork() == 0) parent();
  wait(NULL);
}

static void pipe_victim(void) {
  int ends[2];
  char byte;
  if (pipe(ends) != 0) _exit(99);
  fork_hung();
  close(ends[1]);
  say_ready();
  if (read(ends[0], &byte, 1) < 0) _exit(98);
}

static void pipe_self(void) {
  int ends[2];
  char byte;
  if (pipe(ends) != 0) _exit(99);
  say_ready();
  if (read(ends[0], &byte, 1) < 0) _exit(98);
}

/* Both processes keep both ends of the pipe. */
static void pipe_readers(void) {
  int ends[2];
  char byte;
  if (pipe(ends) != 0) _exit(99);
  if (fork() != 0) say_ready();
  if (read(ends[0], &byte, 1) < 0) _exit(98);
}

static void pipe_ring(void) {
  int there[2];
  int back[2];
  char byte;
  if (pipe(there) != 0 || pipe(back) != 0) _exit(99);
  if (fork() == 0) {
    close(there[1]);
    close(back[0]);
    if (read(there[0], &byte, 1) < 0) _exit(98);
  }
  close(there[0]);
  close(back[1]);
  say_ready();
  if (read(back[0], &byte, 1) < 0) _exit(98);
}

static void pipe_healthy(void) {
  int ends[2];
  char byte;
  if (pipe(ends) != 0) _exit(99);
  if (fork() == 0) {
    for (;;) pause();
  }
  close(ends[1]);
  say_ready();
  if (read(ends[0], &byte, 1) < 0) _exit(98);
}

/* The child writes into a pipe until the pipe is full, and then waits for room. The parent hangs, so it never reads the
 * pipe. */
static void pipe_full(void) {
  int ends[2];
  static char bytes[1 << 20];
  if (pipe(ends) != 0) _exit(99);
  if (fork() == 0) {
    close(ends[0]);
    if (write(ends[1], bytes, sizeof bytes) < 0) _exit(98);
  }
  close(ends[1]);
  say_ready();
  hang();
}

/* The parent ends. Its hung child continues to exist. */
static void orphan(void) {
  fork_hung();
  say_ready();
}

/* The parent ends. Its healthy child waits for signals. */
static void leave_daemon(void) {
  if (fork() == 0) {
    for (;;) pause();
  }
}

/* Ends with status 40 plus the number of the signal that it received. */
static void take_signal(void) {
  sigset_t signals;
  int signal = 0;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  say_ready();
  sigwait(&signals, &signal);
  _exit(40 + signal);
}

/* Prints what the program inherited: process group, blocked signals, handling of SIGCHLD, open descriptors. */
static void describe_start(void) {
  sigset_t mask;
  struct sigaction child;
  sigprocmask(SIG_BLOCK, NULL, &mask);
  sigaction(SIGCHLD, NULL, &child);
  int blocked = 0;
  for (int signal = 1; signal < 32; ++signal) blocked += sigismember(&mask, signal);
  printf("group %s, blocked %d, child %s, descriptors", getpgid(0) == getpgid(getppid()) ? "same" : "other", blocked,
         child.sa_handler == SIG_IGN ? "ignored" : "default");
  for (int fd = 0; fd < 64; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) printf(" %d", fd);
  }
  printf("\n");
}

static void write_and_exit(void) {
  puts("line one");
  fputs("line two\n", stderr);
}

static const struct mode modes[] = {
    {"dead", dead},
    {"dead-threads", dead_threads},
    {"partly-dead", partly_dead},
    {"dead-caught", dead_caught},
    {"partly-dead-caught", partly_dead_caught},
    {"parent-of-timed", parent_of_timed},
    {"reader-of-timed", reader_of_timed},
    {"timed-trap", timed_trap},
    {"exit-signal", exit_signal},
    {"vm-owner", vm_owner},
    {"vm-owner-of-thread", vm_owner_of_thread},
    {"userfault", read_into_userfault},
    {"leader-gone", leader_gone},
    {"plain-private", plain_private},
    {"timed", timed},
    {"vm-sibling", vm_sibling},
    {"idle-epoll", idle_epoll},
    {"idle-sleep", idle_sleep},
    {"parent", parent},
    {"parent-id", parent_id},
    {"parent-any", parent_any},
    {"parent-mixed", parent_mixed},
    {"parent-adopting", parent_adopting},
    {"grandparent", grandparent},
    {"pipe-victim", pipe_victim},
    {"pipe-self", pipe_self},
    {"pipe-readers", pipe_readers},
    {"pipe-ring", pipe_ring},
    {"pipe-healthy", pipe_healthy},
    {"pipe-full", pipe_full},
    {"orphan", orphan},
    {"daemon", leave_daemon},
    {"take-signal", take_signal},
    {"describe-start", describe_start},
    {"write", write_and_exit},
    {NULL, NULL},
};

static void be_asked(int signal) {
  (void)signal;
  if (write(STDOUT_FILENO, "asked", 5) != 5) _exit(99);
}

/* Hangs, with its own handler for each real-time signal. The handler writes "asked". */
static void dead_with_handlers(void) {
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = be_asked;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, NULL);
  }
  dead();
}

int main(int argc, char** argv) {
  if (argc < 2) return 99;
  if (strcmp(argv[1], "dead-with-handlers") == 0) dead_with_handlers();
  if (strcmp(argv[1], "ignore-children") == 0 && argc > 2) { /* ignores SIGCHLD, and runs another program */
    signal(SIGCHLD, SIG_IGN);
    execvp(argv[2], argv + 2);
    return 99;
  }
  const struct mode* mode = modes;
  while (mode->name != NULL && strcmp(argv[1], mode->name) != 0) ++mode;
  if (mode->name == NULL) mode = kernel_modes;
  while (mode->name != NULL && strcmp(argv[1], mode->name) != 0) ++mode;
  if (mode->name == NULL) return 99;
  mode->run();
  return argc > 2 ? atoi(argv[2]) : 0;
}
