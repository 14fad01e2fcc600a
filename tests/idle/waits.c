// waits NAME [PATH]: a healthy process that waits in one of several ways. NAME chooses the way. The process writes a
// byte before it waits. After the wait it prints the result and errno. One of these ends the wait: a byte or the end of
// standard input, a signal, a connection to the socket PATH, or a timeout.
#include "waits.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kSeconds = 6 };  // longer than the time for which forksight examines the process

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_over;

static struct timespec deadline(clockid_t clock) {
  struct timespec when;
  clock_gettime(clock, &when);
  when.tv_sec += kSeconds;
  return when;
}

void say_ready(void) {
  if (write(STDOUT_FILENO, "x", 1) != 1) _exit(3);
}

int read_byte(int fd) {
  char byte;
  return (int)read(fd, &byte, 1);
}

pthread_t start(void* (*routine)(void*)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, routine, NULL) != 0) _exit(3);
  return thread;
}

static int in_epoll(const char* path) {
  (void)path;
  struct epoll_event event = {.events = EPOLLIN};
  const int fd = epoll_create1(0);
  epoll_ctl(fd, EPOLL_CTL_ADD, STDIN_FILENO, &event);
  say_ready();
  return epoll_wait(fd, &event, 1, -1);
}

static int in_poll(const char* path) {
  (void)path;
  struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
  say_ready();
  return poll(&fd, 1, -1);
}

static int in_select(const char* path) {
  (void)path;
  fd_set set;
  FD_ZERO(&set);
  FD_SET(STDIN_FILENO, &set);
  say_ready();
  return select(1, &set, NULL, NULL, NULL);
}

static int in_read(const char* path) {
  (void)path;
  say_ready();
  return read_byte(STDIN_FILENO);
}

static void* sleep_for_long(void* nothing) {
  const struct timespec time = {kSeconds, 0};
  if (nanosleep(&time, NULL) != 0) is_over = errno;
  return nothing;
}

static int in_join_of_sleepers(const char* path) {
  (void)path;
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) threads[i] = start(sleep_for_long);
  say_ready();
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  errno = is_over;
  return is_over;
}

static void* work_when_told(void* nothing) {
  pthread_mutex_lock(&mutex);
  while (!is_over) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
  return nothing;
}

static int with_pool(int (*wait)(void)) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) threads[i] = start(work_when_told);
  say_ready();
  const int result = wait();
  pthread_mutex_lock(&mutex);
  is_over = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  return result;
}

static int wait_for_input(void) { return read_byte(STDIN_FILENO); }

static int wait_for_time(void) {
  const struct timespec time = {kSeconds, 0};
  return nanosleep(&time, NULL);
}

static int wait_for_signal(void) {
  sigset_t set;
  int signal = 0;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  return sigwait(&set, &signal) == 0 && signal == SIGUSR1 ? 1 : -1;
}

static void block_signal(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
}

static int pool_and_read(const char* path) {
  (void)path;
  return with_pool(wait_for_input);
}

static int pool_and_sleep(const char* path) {
  (void)path;
  return with_pool(wait_for_time);
}

static int pool_and_sigwait(const char* path) {
  (void)path;
  block_signal();
  return with_pool(wait_for_signal);
}

static int in_signalfd(const char* path) {
  (void)path;
  block_signal();
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  struct signalfd_siginfo info;
  const int fd = signalfd(-1, &set, 0);
  say_ready();
  return read(fd, &info, sizeof info) == sizeof info ? 1 : -1;
}

static int in_timerfd(const char* path) {
  (void)path;
  const struct itimerspec when = {.it_value = {kSeconds, 0}};
  unsigned long long count = 0;
  const int fd = timerfd_create(CLOCK_MONOTONIC, 0);
  timerfd_settime(fd, 0, &when, NULL);
  say_ready();
  return read(fd, &count, sizeof count) == sizeof count ? 1 : -1;
}

static void do_nothing(int signal) { (void)signal; }

// pause() fails with EINTR, because the test sends SIGUSR1.
static int in_pause(const char* path) {
  (void)path;
  signal(SIGUSR1, do_nothing);
  say_ready();
  return pause();
}

static int in_sigsuspend(const char* path) {
  (void)path;
  signal(SIGUSR1, do_nothing);
  block_signal();
  sigset_t set;
  sigemptyset(&set);
  say_ready();
  return sigsuspend(&set);
}

static int in_eventfd(const char* path) {
  (void)path;
  struct pollfd fd = {.fd = eventfd(0, 0), .events = POLLIN};
  say_ready();
  return poll(&fd, 1, kSeconds * 1000);
}

static int in_sem_timedwait(const char* path) {
  (void)path;
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const struct timespec when = deadline(CLOCK_REALTIME);
  say_ready();
  return sem_timedwait(&semaphore, &when);
}

static int in_cond_timedwait(const char* path) {
  (void)path;
  const struct timespec when = deadline(CLOCK_REALTIME);
  pthread_mutex_lock(&mutex);
  say_ready();
  errno = pthread_cond_timedwait(&changed, &mutex, &when);
  return -1;
}

static int in_semtimedop(const char* path) {
  (void)path;
  const int set = semget(IPC_PRIVATE, 1, 0600);
  struct sembuf take = {.sem_op = -1};
  const struct timespec time = {kSeconds, 0};
  say_ready();
  const int result = semtimedop(set, &take, 1, &time);
  const int error = errno;
  semctl(set, 0, IPC_RMID);
  errno = error;
  return result;
}

static int in_recv_with_timeout(const char* path) {
  (void)path;
  int ends[2];
  const struct timeval time = {kSeconds, 0};
  char byte;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return -2;
  setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  say_ready();
  return (int)recv(ends[0], &byte, 1, 0);
}

static int make_socket(const char* path, int (*act)(int, const struct sockaddr*, socklen_t)) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  return act(fd, (const struct sockaddr*)&address, sizeof address) == 0 ? fd : -1;
}

static int in_accept(const char* path) {
  const int fd = make_socket(path, bind);
  listen(fd, 8);
  say_ready();
  return accept(fd, NULL, NULL) >= 0 ? 1 : -1;
}

static int as_client(const char* path) {
  const int fd = make_socket(path, connect);
  char byte;
  say_ready();
  return (int)recv(fd, &byte, 1, 0);
}

static const struct {
  const char* name;
  int (*wait)(const char* path);
} kWaits[] = {
    {"epoll", in_epoll},
    {"poll", in_poll},
    {"select", in_select},
    {"pipe", in_read},
    {"sleepers", in_join_of_sleepers},
    {"pool_and_read", pool_and_read},
    {"pool_and_sleep", pool_and_sleep},
    {"pool_and_sigwait", pool_and_sigwait},
    {"signalfd", in_signalfd},
    {"timerfd", in_timerfd},
    {"pause", in_pause},
    {"sigsuspend", in_sigsuspend},
    {"eventfd", in_eventfd},
    {"sem_timedwait", in_sem_timedwait},
    {"cond_timedwait", in_cond_timedwait},
    {"semtimedop", in_semtimedop},
    {"recv_with_timeout", in_recv_with_timeout},
    {"accept", in_accept},
    {"client", as_client},
    {"live_child", wait_for_live_child},
    {"prefork", be_prefork_server},
    {"forked_reader", fork_reader},
    {"forked_threads", fork_worker_with_threads},
    {"forked_pool", fork_worker_with_pool},
    {"forked_daemon", fork_daemon},
    {"flock", wait_for_file_lock},
};

int main(int argc, char** argv) {
  for (size_t i = 0; argc > 1 && i < sizeof kWaits / sizeof kWaits[0]; ++i) {
    if (strcmp(argv[1], kWaits[i].name) != 0) continue;
    errno = 0;
    const int result = kWaits[i].wait(argc > 2 ? argv[2] : "");
    printf("%d %s\n", result, errno == 0 ? "0" : strerrorname_np(errno));
    return 0;
  }
  fprintf(stderr, "waits NAME [PATH]\n");
  return 2;
}
