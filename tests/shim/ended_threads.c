// Threads end in a way that the shim does not see. Then the program forks. The record of the fork must not count these
// threads as lost. The name of a scene says how its threads end.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kCallbacks = 300, kThreads = 8 };

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static int g_calls;

static void fork_once(void) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) abort();
}

static void count_call(void) {
  pthread_mutex_lock(&g_mutex);
  ++g_calls;
  pthread_mutex_unlock(&g_mutex);
}

static int count_calls(void) {
  pthread_mutex_lock(&g_mutex);
  const int calls = g_calls;
  pthread_mutex_unlock(&g_mutex);
  return calls;
}

// Waits until /proc/self/status shows the wanted number of threads.
static void wait_for_threads(int wanted) {
  for (;;) {
    char line[256];
    int threads = 0;
    FILE* const file = fopen("/proc/self/status", "r");
    if (file == NULL) abort();
    while (fgets(line, sizeof line, file) != NULL) sscanf(line, "Threads: %d", &threads);
    fclose(file);
    if (threads == wanted) return;
    sched_yield();
  }
}

static void on_timer(union sigval unused) {
  (void)unused;
  count_call();
}

// libc makes a thread for each call-back, and this thread then ends. libc also makes one thread that waits for the
// timers. That thread still exists at the fork.
static void callbacks(void) {
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_timer};
  const struct itimerspec soon = {.it_value = {.tv_nsec = 1}};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) abort();
  for (int i = 1; i <= kCallbacks; ++i) {
    if (timer_settime(timer, 0, &soon, NULL) != 0) abort();
    while (count_calls() < i) sched_yield();
  }
  timer_delete(timer);
  wait_for_threads(2);
  fork_once();
}

static void* leave_by_call(void* unused) {
  count_call();
  syscall(SYS_exit, 0);
  return unused;
}

static void* leave_in_line(void* unused) {
  count_call();
  __asm__ volatile("syscall" : : "a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
  return unused;
}

static void leave(void* (*run)(void*)) {
  pthread_t thread;
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&thread, NULL, run, NULL) != 0) abort();
  }
  wait_for_threads(1);
  fork_once();
}
static void by_call(void) { leave(leave_by_call); }
static void in_line(void) { leave(leave_in_line); }

static void* outlive_main(void* unused) {
  char path[64];
  char text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
  while (strstr(text, ") Z ") == NULL) {
    FILE* const file = fopen(path, "r");
    if (file == NULL || fgets(text, sizeof text, file) == NULL) abort();
    fclose(file);
    sched_yield();
  }
  fork_once();
  exit(0);
  return unused;
}

static void main_exits(void) {
  pthread_t thread;
  count_call();
  if (pthread_create(&thread, NULL, outlive_main, NULL) != 0) abort();
  pthread_exit(NULL);
}

static void* join_main(void* first) {
  if (pthread_join(*(pthread_t*)first, NULL) != 0) abort();
  fork_once();
  exit(0);
}

// When a thread ends, the kernel writes 0 to the thread id in its descriptor. pthread_join() writes another value
// there.
static void main_is_joined(void) {
  static pthread_t first;
  pthread_t thread;
  first = pthread_self();
  count_call();
  if (pthread_create(&thread, NULL, join_main, &first) != 0) abort();
  pthread_exit(NULL);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (strcmp(argv[1], "callbacks") == 0) callbacks();
  if (strcmp(argv[1], "by_call") == 0) by_call();
  if (strcmp(argv[1], "in_line") == 0) in_line();
  if (strcmp(argv[1], "main_exits") == 0) main_exits();
  if (strcmp(argv[1], "main_is_joined") == 0) main_is_joined();
  return 0;
}
