/* Functions that wait for children. */
#include "probe.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Makes a child that ends by the signal `number`, or with status 3 if `number` is 0. */
static pid_t make_child(int number) {
  const pid_t child = fork();
  if (child != 0) return child;
  if (number != 0) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(number, SIG_DFL);
    kill(getpid(), number);
  }
  _exit(3);
}

static void show_end(const char* how, int is_it, int status) {
  if (WIFSIGNALED(status)) {
    say("  %s: %s, signal %d", how, is_it ? "the child" : "another", WTERMSIG(status));
  } else {
    say("  %s: %s, exit status %d", how, is_it ? "the child" : "another", WEXITSTATUS(status));
  }
}

/* The shim must not make children of its own, so each wait must return the child that make_child() has made. */
PROBE(ends) {
  static const int numbers[] = {0, SIGKILL, SIGSEGV};
  for (int i = 0; i < 3; ++i) {
    int status = 0;
    struct rusage usage;
    siginfo_t info = {0};
    pid_t child = make_child(numbers[i]);
    pid_t got = waitpid(child, &status, 0);
    show_end("waitpid", got == child, status);
    child = make_child(numbers[i]);
    got = wait4(child, &status, 0, &usage);
    show_end("wait4", got == child, status);
    child = make_child(numbers[i]);
    SHOW(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
    say("  waitid: %s, code %d, status %d", info.si_pid == child ? "the child" : "another", info.si_code,
        info.si_status);
    SHOW(waitid(P_PID, (id_t)child, NULL, WEXITED));
    child = make_child(numbers[i]);
    SHOW(waitpid(child, NULL, 0) == child);
  }
}

/* Waits for any child, in contexts in which no other child can exist. */
PROBE_IN(any_child, IN_MAIN | IN_MAIN_OF_MANY | IN_CHILD | IN_WATCHED_CHILD) {
  int status = 0;
  struct rusage usage;
  pid_t child = make_child(SIGABRT);
  pid_t got = wait(&status);
  show_end("wait", got == child, status);
  child = make_child(0);
  SHOW(wait(NULL) == child);
  child = make_child(SIGBUS);
  got = wait3(&status, 0, &usage);
  show_end("wait3", got == child, status);
}

PROBE(refusals) {
  int status = 4711;
  siginfo_t info;
  SHOW(waitpid(getpid(), &status, 0));
  SHOW(wait4(getpid(), &status, 0, NULL));
  SHOW(waitid(P_PID, (id_t)getpid(), &info, WEXITED));
  SHOW(waitid((idtype_t)77, 0, &info, WEXITED));
  SHOW(waitpid(getpid(), &status, 0x7000));
  say("  status %s", status == 4711 ? "as it was" : "changed");
}

PROBE(not_yet) {
  int status = 4711;
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  SHOW(waitpid(child, &status, WNOHANG));
  SHOW(wait4(child, &status, WNOHANG, NULL));
  say("  status %s", status == 4711 ? "as it was" : "changed");
  kill(child, SIGKILL);
  SHOW(waitpid(child, &status, 0) == child);
}

static pid_t g_child;
static int g_status;
static void prepare(void) {
  g_status = 0;
  g_child = fork();
  if (g_child == 0) {
    for (;;) pause();
  }
}
static int wait_for_child(void) { return waitpid(g_child, &g_status, 0) == g_child ? 0 : errno; }
static void release(void) { kill(g_child, SIGSEGV); }
static void after(void) {
  say("  status %s", WIFSIGNALED(g_status) ? "a signal" : "none");
  if (WIFSIGNALED(g_status)) return; /* the child has been waited for, so another process may have its pid now */
  kill(g_child, SIGKILL);
  while (waitpid(g_child, NULL, 0) == -1 && errno == EINTR) {
  }
}
PROBE_IN(waitpid_blocks, ANYWHERE & ~IN_HANDLER) {
  static const struct Blocking blocking = {"waitpid", prepare, wait_for_child, release, after, NULL};
  show_blocking(&blocking);
}
