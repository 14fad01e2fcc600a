/* Forks that run no atfork handlers, and exit() in a child. */
#include "probe.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void show_end(pid_t child, int error) {
  int status = -1;
  const pid_t waited = waitpid(child, &status, 0);
  say("  parent: errno %d, child %d, status %x", error, waited == child && child > 0, (unsigned)status);
}

static void show_bare_fork(void) {
  errno = kSentinel;
  const pid_t child = _Fork();
  const int error = errno;
  if (child == 0) {
    say("  child: errno %d, is initial thread %d", error, getpid() == gettid());
    _exit(3);
  }
  show_end(child, error);
}
PROBE(bare_fork) {
  show_bare_fork();
  in_thread(show_bare_fork);
  in_child(show_bare_fork);
}

static char g_stack[16384] __attribute__((aligned(64)));
static int g_sum;
static int run_child(void* argument) {
  g_sum += *(int*)argument;
  say("  child: is initial thread %d, sum %d", getpid() == gettid(), g_sum);
  return 4;
}
PROBE(cloned) {
  int number = 5;
  g_sum = 1;
  errno = kSentinel;
  pid_t child = clone(run_child, g_stack + sizeof g_stack, SIGCHLD, &number);
  show_end(child, errno);
  say("sum %d", g_sum);
  errno = kSentinel;
  child = clone(run_child, g_stack + sizeof g_stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &number);
  show_end(child, errno);
  say("sum %d", g_sum);
  pid_t tid = 0;
  errno = kSentinel;
  child = clone(run_child, g_stack + sizeof g_stack, CLONE_PARENT_SETTID | SIGCHLD, &number, &tid);
  show_end(child, errno);
  say("tid is set %d", tid == child);
  SHOW(clone(NULL, g_stack + sizeof g_stack, SIGCHLD, NULL));
  SHOW(clone(run_child, NULL, SIGCHLD, NULL));
  SHOW(clone(run_child, g_stack + sizeof g_stack, CLONE_THREAD | SIGCHLD, NULL));
}

static void leave(void) { exit(5); }
PROBE_IN(exit_of_a_child, IN_MAIN | IN_MAIN_OF_MANY | IN_CHILD | IN_WATCHED_CHILD | IN_SMALL_THREAD) { in_child(leave); }
