/* Modes of the fixture that wait for objects of the kernel. Most exist in two versions: one hangs, and one is healthy.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

static void fork_idle(void) {
  if (fork() != 0) return;
  for (;;) pause();
}

static uint32_t* share_word(void) {
  return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void shared(void) {
  uint32_t* map = share_word();
  say_ready();
  wait_on(map, FUTEX_WAIT, NULL);
}

static void shared_healthy(void) {
  uint32_t* map = share_word();
  fork_idle();
  say_ready();
  wait_on(map, FUTEX_WAIT, NULL);
}

static void shared_victim(void) {
  uint32_t* map = share_word();
  fork_hung();
  say_ready();
  wait_on(map, FUTEX_WAIT, NULL);
}

/* Polls a timer that is not armed, and a pidfd of a child that sleeps in a futex. */
static void poll_timer_and_process(void) {
  struct pollfd both[2] = {{.fd = timerfd_create(CLOCK_MONOTONIC, 0), .events = POLLIN}, {.fd = -1, .events = POLLIN}};
  const pid_t child = fork();
  if (child == 0) wait_on(share_word(), FUTEX_WAIT, NULL);
  both[1].fd = (int)syscall(SYS_pidfd_open, child, 0);
  say_ready();
  poll(both, 2, -1);
}

static void read_socket(int ends[2]) {
  char byte;
  say_ready();
  if (read(ends[0], &byte, 1) < 0) _exit(98);
}

static void make_sockets(int ends[2]) {
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) _exit(99);
}

static void socket_self(void) {
  int ends[2];
  make_sockets(ends);
  read_socket(ends);
}

static void socket_healthy(void) {
  int ends[2];
  make_sockets(ends);
  fork_idle();
  close(ends[1]);
  read_socket(ends);
}

static void socket_victim(void) {
  int ends[2];
  make_sockets(ends);
  fork_hung();
  close(ends[1]);
  read_socket(ends);
}

static void socket_timed(void) {
  const struct timeval hour = {3600, 0};
  int ends[2];
  make_sockets(ends);
  if (setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &hour, sizeof hour) != 0) _exit(97);
  fork_hung();
  close(ends[1]);
  read_socket(ends);
}

/* Makes a TCP connection over the loopback interface. `ends` are its two sockets. */
static void connect_tcp(int ends[2]) {
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 1) != 0) _exit(96);
  if (getsockname(listener, (struct sockaddr*)&address, &size) != 0) _exit(95);
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(ends[0], (struct sockaddr*)&address, sizeof address) != 0) _exit(94);
  ends[1] = accept(listener, NULL, NULL);
  close(listener);
}

static void tcp_victim(void) {
  int ends[2];
  connect_tcp(ends);
  fork_hung();
  close(ends[1]);
  read_socket(ends);
}

static void tcp_healthy(void) {
  int ends[2];
  connect_tcp(ends);
  fork_idle();
  close(ends[1]);
  read_socket(ends);
}

static void idle_accept(void) {
  struct sockaddr_un address;
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  /* The address has only the family: the kernel then chooses an abstract name. */
  if (bind(listener, (struct sockaddr*)&address, sizeof address.sun_family) != 0 || listen(listener, 1) != 0) _exit(96);
  struct pollfd one = {listener, POLLIN, 0};
  say_ready();
  poll(&one, 1, -1);
}

static void eventfd_victim(void) {
  uint64_t count;
  const int event = eventfd(0, 0);
  fork_hung();
  say_ready();
  if (read(event, &count, sizeof count) < 0) _exit(98);
}

/* The process reads from its own pipe. After three seconds, a second process opens the pipe through /proc, and writes
 * to it. The second process is no longer a descendant of the reader, and has closed the ends that it inherited. */
static void woken_by_proc(void) {
  int ends[2];
  char byte;
  if (pipe(ends) != 0) _exit(99);
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), ends[1]);
  if (fork() == 0) {
    if (setsid() < 0 || fork() != 0) _exit(0);
    close(ends[0]);
    close(ends[1]);
    sleep(3);
    const int end = open(path, O_WRONLY);
    if (end < 0 || write(end, "x", 1) != 1) _exit(98);
    _exit(0);
  }
  wait(NULL);
  say_ready();
  if (read(ends[0], &byte, 1) != 1) _exit(98);
  _exit(5);
}

static void eventfd_healthy(void) {
  uint64_t count;
  const int event = eventfd(0, 0);
  fork_idle();
  say_ready();
  if (read(event, &count, sizeof count) < 0) _exit(98);
}

static void poll_pipe(int by_epoll, int by_select) {
  int ends[2];
  if (pipe(ends) != 0) _exit(99);
  fork_hung();
  close(ends[1]);
  say_ready();
  if (by_epoll) {
    struct epoll_event event = {EPOLLIN, {0}};
    const int poller = epoll_create1(0);
    epoll_ctl(poller, EPOLL_CTL_ADD, ends[0], &event);
    epoll_wait(poller, &event, 1, -1);
  }
  if (by_select) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    select(ends[0] + 1, &set, NULL, NULL, NULL);
  }
  struct pollfd one = {ends[0], POLLIN, 0};
  poll(&one, 1, -1);
}

static void poll_victim(void) { poll_pipe(0, 0); }
static void epoll_victim(void) { poll_pipe(1, 0); }
static void select_victim(void) { poll_pipe(0, 1); }

/* 200 children that each wait in an epoll instance of their own for a socket of their own. */
static void event_loops(void) {
  for (int child = 0; child < 200; ++child) {
    struct epoll_event event = {.events = EPOLLIN};
    int ends[2];
    if (fork() != 0) continue;
    const int instance = epoll_create1(0);
    make_sockets(ends);
    if (epoll_ctl(instance, EPOLL_CTL_ADD, ends[0], &event) != 0) _exit(99);
    epoll_wait(instance, &event, 1, -1);
    _exit(98);
  }
  say_ready();
  wait(NULL);
}

/* The child opens the file itself, takes the lock, and then calls `then`, which hangs or idles. */
static void flock_after(void (*then)(void)) {
  char path[] = "/tmp/forksight-fixture-XXXXXX";
  char byte;
  int ready[2];
  const int file = mkstemp(path);
  if (file < 0 || pipe(ready) != 0) _exit(99);
  if (fork() == 0) {
    const int own = open(path, O_RDWR);
    close(file);
    if (flock(own, LOCK_EX) != 0 || write(ready[1], "", 1) != 1) _exit(97);
    then();
  }
  if (read(ready[0], &byte, 1) != 1) _exit(98);
  unlink(path);
  say_ready();
  flock(file, LOCK_EX);
}

static void idle(void) {
  for (;;) pause();
}
static void flock_victim(void) { flock_after(hang); }
static void flock_healthy(void) { flock_after(idle); }

/* The child opens the file by a second hard link, takes the lock, and starts a child, which has the same open file.
   Then it calls `taker`, and its child calls `heir`. */
static void flock_by_link(void (*taker)(void), void (*heir)(void)) {
  char path[] = "/tmp/forksight-fixture-XXXXXX";
  char other[sizeof path + 5];
  char byte;
  int ready[2];
  const int file = mkstemp(path);
  snprintf(other, sizeof other, "%s-link", path);
  if (file < 0 || pipe(ready) != 0 || link(path, other) != 0) _exit(99);
  if (fork() == 0) {
    const int own = open(other, O_RDWR);
    close(file);
    if (flock(own, LOCK_EX) != 0) _exit(97);
    if (heir != NULL && fork() == 0) heir();
    if (write(ready[1], "", 1) != 1) _exit(96);
    taker();
  }
  if (read(ready[0], &byte, 1) != 1) _exit(98);
  unlink(path);
  unlink(other);
  say_ready();
  flock(file, LOCK_EX);
}
static void flock_link_victim(void) { flock_by_link(hang, NULL); }
static void flock_link_healthy(void) { flock_by_link(idle, NULL); }
static void flock_link_heir(void) { flock_by_link(hang, idle); }

static void fcntl_victim(void) {
  char path[] = "/tmp/forksight-fixture-XXXXXX";
  char byte;
  int ready[2];
  struct flock lock = {F_WRLCK, SEEK_SET, 10, 5, 0};
  const int file = mkstemp(path);
  unlink(path);
  if (file < 0 || pipe(ready) != 0) _exit(99);
  if (fork() == 0) {
    if (fcntl(file, F_SETLKW, &lock) != 0 || write(ready[1], "", 1) != 1) _exit(97);
    hang();
  }
  if (read(ready[0], &byte, 1) != 1) _exit(98);
  say_ready();
  fcntl(file, F_SETLKW, &lock);
}

/* The parent sleeps in vfork() until its child ends. The child hangs. */
static void vfork_victim(void) {
  say_ready();
  if (vfork() == 0) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, word, NULL, NULL, 0);
  _exit(0);
}

const struct mode kernel_modes[] = {
    {"shared", shared},
    {"shared-healthy", shared_healthy},
    {"shared-victim", shared_victim},
    {"poll-timer-and-process", poll_timer_and_process},
    {"socket-self", socket_self},
    {"socket-healthy", socket_healthy},
    {"socket-victim", socket_victim},
    {"socket-timed", socket_timed},
    {"tcp-victim", tcp_victim},
    {"tcp-healthy", tcp_healthy},
    {"idle-accept", idle_accept},
    {"eventfd-victim", eventfd_victim},
    {"woken-by-proc", woken_by_proc},
    {"eventfd-healthy", eventfd_healthy},
    {"poll-victim", poll_victim},
    {"epoll-victim", epoll_victim},
    {"event-loops", event_loops},
    {"select-victim", select_victim},
    {"flock-victim", flock_victim},
    {"flock-healthy", flock_healthy},
    {"flock-link-victim", flock_link_victim},
    {"flock-link-healthy", flock_link_healthy},
    {"flock-link-heir", flock_link_heir},
    {"fcntl-victim", fcntl_victim},
    {"vfork-victim", vfork_victim},
    {NULL, NULL},
};
