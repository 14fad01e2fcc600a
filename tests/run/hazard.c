/* The child locks a mutex that a lost thread held at the fork. The argument says what the parent does. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t never_free = PTHREAD_MUTEX_INITIALIZER;
static int held[2];

static void* hold(void* unused) {
  (void)unused;
  pthread_mutex_lock(&table_mutex);
  if (write(held[1], "h", 1) != 1) _exit(99);
  pthread_mutex_lock(&never_free);
  return NULL;
}

static void start_holder(void) {
  pthread_t thread;
  char byte;
  pthread_mutex_lock(&never_free);
  if (pipe(held) != 0) _exit(99);
  pthread_create(&thread, NULL, hold, NULL);
  if (read(held[0], &byte, 1) != 1) _exit(99);
}

/* Returns when the process has blocked in a futex. */
static void wait_blocked(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/syscall", (int)pid);
  for (;;) {
    char text[16] = "";
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, text, sizeof text - 1) < 0) _exit(98);
    close(file);
    if (strncmp(text, "202 ", 4) == 0) return;
    sched_yield();
  }
}

static pid_t fork_child(const struct timespec* deadline) {
  const pid_t child = fork();
  if (child != 0) return child;
  if (deadline == NULL) {
    pthread_mutex_lock(&table_mutex);
  } else {
    pthread_mutex_timedlock(&table_mutex, deadline);
  }
  _exit(0);
}

static void say_ready(void) {
  if (write(STDOUT_FILENO, "r", 1) != 1) _exit(99);
}

static void on_interrupt(int signal) {
  (void)signal;
  if (write(STDERR_FILENO, "interrupted\n", 12) != 12) _exit(99);
  _exit(7);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const struct timespec past = {0, 0};
  struct timespec far;
  clock_gettime(CLOCK_REALTIME, &far);
  far.tv_sec += 3600;
  if (strcmp(mode, "handler") == 0) signal(SIGINT, on_interrupt);
  if (strcmp(mode, "stubborn") == 0) signal(SIGINT, SIG_IGN);
  start_holder();

  if (strcmp(mode, "failed") == 0) { /* the child's lock call returns ETIMEDOUT, so the harm is certain */
    waitpid(fork_child(&past), NULL, 0);
    return 5;
  }
  if (strcmp(mode, "killed") == 0) { /* the child is killed before its lock call returns, so the harm is only likely */
    const pid_t child = fork_child(&far);
    wait_blocked(child);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 6;
  }
  const pid_t child = fork_child(NULL);
  wait_blocked(child);
  if (strcmp(mode, "orphan") == 0) return 4; /* the hung child continues to exist */
  say_ready();
  waitpid(child, NULL, 0);
  return 0;
}
