/* What all probes use: printing lines, deadlines, threads that block. */
#include "probe.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void say(const char* format, ...) {
  const int saved = errno;
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
  line[length++] = '\n';
  if (write(STDOUT_FILENO, line, (size_t)length) != length) _exit(9);
  errno = saved;
}

long milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct timespec long_ago(void) {
  return (struct timespec){.tv_sec = 1, .tv_nsec = 0};
}

static __thread long t_deadline_made; /* when the thread last called in_ms(); 0: not since its last wait */

long begin_of_wait(void) {
  const long begin = t_deadline_made != 0 ? t_deadline_made : milliseconds();
  t_deadline_made = 0;
  return begin;
}

struct timespec in_ms(clockid_t clock, long ms) {
  t_deadline_made = milliseconds();
  struct timespec time;
  clock_gettime(clock, &time);
  time.tv_sec += ms / 1000;
  time.tv_nsec += ms % 1000 * 1000000;
  if (time.tv_nsec >= 1000000000) {
    time.tv_nsec -= 1000000000;
    ++time.tv_sec;
  }
  return time;
}

/* Returns the state of a thread, or 'X' if it has ended. */
static char state_of(pid_t thread) {
  char path[64];
  char text[128] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 'X';
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  const char* const end = got > 0 ? strrchr(text, ')') : NULL;
  return end != NULL && end[1] == ' ' ? end[2] : 'X';
}

void wait_until_asleep(pid_t thread) {
  for (int seen = 0; seen < 3; sched_yield()) {
    const char state = state_of(thread);
    if (state == 'X') return;
    seen = state == 'S' ? seen + 1 : 0;
  }
}

/* --- calls that block ------------------------------------------------------------------------------------------- */

enum Act { kRelease, kInterrupt, kInterruptRestarting, kCancel, kCancelBefore };

static const struct Blocking* g_blocking;
static enum Act g_act;
static atomic_int g_tid;
static atomic_int g_done;
static atomic_int g_handled;
static int g_result;
static int g_errno;

static void on_signal(int number) {
  (void)number;
  errno = EXFULL; /* the handler does not restore errno, so errno after the call shows whether the call sets it */
  atomic_fetch_add(&g_handled, 1);
}

static void clean(void* unused) {
  (void)unused;
  if (g_blocking->cleanup != NULL) g_blocking->cleanup();
  say("  cleanup handler ran");
}

static void* block(void* unused) {
  (void)unused;
  pthread_cleanup_push(clean, NULL);
  if (g_act == kCancelBefore) pthread_cancel(pthread_self());
  atomic_store(&g_tid, gettid());
  errno = kSentinel;
  g_result = g_blocking->call();
  g_errno = errno;
  atomic_store(&g_done, 1);
  pthread_cleanup_pop(0);
  say("  returned %d, errno %d", g_result, g_errno);
  pthread_testcancel();
  return NULL;
}

/* Waits until the thread has returned from the call, has ended in it, or sleeps in it. Returns false if the thread
 * sleeps. */
static bool returns_without_release(pid_t tid) {
  for (int seen = 0; seen < 3; sched_yield()) {
    if (atomic_load(&g_done)) return true;
    const char state = state_of(tid);
    if (state == 'X' || state == 'Z') return true;
    seen = state == 'S' ? seen + 1 : 0;
  }
  return false;
}

static void show_act(const struct Blocking* blocking, enum Act act) {
  static const char* const kNames[] = {"released", "interrupted", "interrupted, SA_RESTART", "cancelled",
                                       "cancelled before"};
  pthread_t thread;
  void* ended = NULL;
  struct sigaction old;
  const struct sigaction action = {.sa_handler = on_signal, .sa_flags = act == kInterruptRestarting ? SA_RESTART : 0};
  say(" %s: %s", blocking->name, kNames[act]);
  g_blocking = blocking;
  g_act = act;
  atomic_store(&g_tid, 0);
  atomic_store(&g_done, 0);
  atomic_store(&g_handled, 0);
  if (blocking->prepare != NULL) blocking->prepare();
  sigaction(SIGUSR1, &action, &old);
  if (pthread_create(&thread, NULL, block, NULL) != 0) abort();
  while (atomic_load(&g_tid) == 0) sched_yield();
  const pid_t tid = atomic_load(&g_tid);
  bool back = returns_without_release(tid);
  if (!back && act == kCancel) pthread_cancel(thread);
  if (!back && (act == kInterrupt || act == kInterruptRestarting)) {
    pthread_kill(thread, SIGUSR1);
    while (!atomic_load(&g_handled)) sched_yield();
  }
  if (!back && act != kRelease) back = returns_without_release(tid);
  if (!back) {
    say("  blocks");
    blocking->release();
  }
  pthread_join(thread, &ended);
  say("  %s, handler ran %d times", ended == PTHREAD_CANCELED ? "cancelled" : "ended", atomic_load(&g_handled));
  sigaction(SIGUSR1, &old, NULL);
  if (blocking->after != NULL) blocking->after();
}

void show_blocking(const struct Blocking* blocking) {
  for (enum Act act = kRelease; act <= kCancelBefore; act = (enum Act)(act + 1)) show_act(blocking, act);
}

/* --- threads and children --------------------------------------------------------------------------------------- */

struct Body {
  void (*run)(void);
};

static void* call_body(void* body) {
  ((const struct Body*)body)->run();
  return NULL;
}

void in_thread(void (*body)(void)) {
  pthread_t thread;
  struct Body called = {body};
  if (pthread_create(&thread, NULL, call_body, &called) != 0) abort();
  pthread_join(thread, NULL);
}

void in_child(void (*body)(void)) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) say("no child: errno %d", errno);
  say("child ended with status %x", (unsigned)status);
}
