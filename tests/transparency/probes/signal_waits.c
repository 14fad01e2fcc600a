/* Waiting for signals.
 * COVERS: sigwait sigwaitinfo sigtimedwait
 */
#include "probe.h"

#include <signal.h>
#include <string.h>

static sigset_t set_of(int number) {
  sigset_t set;
  sigemptyset(&set);
  if (number != 0) sigaddset(&set, number);
  return set;
}

/* To this thread alone, and blocked: it is there when it is asked for. */
static sigset_t block(int number) {
  const sigset_t set = set_of(number);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &set, &before);
  return before;
}

PROBE(pending_ones_come_at_once) {
  const sigset_t set = set_of(SIGUSR2);
  const sigset_t before = block(SIGUSR2);
  const struct timespec none = {0, 0};
  siginfo_t info;
  int number = 0;
  pthread_kill(pthread_self(), SIGUSR2);
  SHOW(sigwait(&set, &number));
  say("  %s", strsignal(number));
  pthread_kill(pthread_self(), SIGUSR2);
  SHOW(sigwaitinfo(&set, &info) == SIGUSR2);
  say("  %s, code %d", strsignal(info.si_signo), info.si_code);
  pthread_kill(pthread_self(), SIGUSR2);
  SHOW(sigtimedwait(&set, &info, &none) == SIGUSR2);
  SHOW(sigtimedwait(&set, NULL, &none));
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

PROBE(deadlines) {
  const sigset_t set = set_of(SIGUSR2);
  const sigset_t before = block(SIGUSR2);
  const struct timespec soon = {0, 20 * 1000 * 1000};
  const struct timespec wrong = {0, -1};
  SHOW_TIMED(sigtimedwait(&set, NULL, &soon), 19);
  SHOW(sigtimedwait(&set, NULL, &wrong));
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static pthread_t g_waiter;
static int g_number;
static void prepare(void) { g_number = 0; }
static int wait_for_usr2(void) {
  const sigset_t set = set_of(SIGUSR2);
  block(SIGUSR2);
  g_waiter = pthread_self();
  return sigwait(&set, &g_number);
}
static int wait_for_info(void) {
  const sigset_t set = set_of(SIGUSR2);
  block(SIGUSR2);
  g_waiter = pthread_self();
  return sigwaitinfo(&set, NULL) == SIGUSR2 ? 0 : errno;
}
static void release(void) { pthread_kill(g_waiter, SIGUSR2); }
static void after(void) { say("  number %s", g_number == SIGUSR2 ? "set" : "not set"); }

PROBE_IN(sigwait_blocks, ANYWHERE & ~IN_HANDLER) {
  static const struct Blocking blocking = {"sigwait", prepare, wait_for_usr2, release, after, NULL};
  show_blocking(&blocking);
}
PROBE_IN(sigwaitinfo_blocks, ANYWHERE & ~IN_HANDLER) {
  static const struct Blocking blocking = {"sigwaitinfo", prepare, wait_for_info, release, after, NULL};
  show_blocking(&blocking);
}
