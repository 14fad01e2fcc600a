/* Functions that wait for signals. */
#include "probe.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static sigset_t set_of(int number) {
  sigset_t set;
  sigemptyset(&set);
  if (number != 0) sigaddset(&set, number);
  return set;
}

/* Blocks the signal in this thread, so that it stays pending until the thread waits for it. Returns the old mask. */
static sigset_t block(int number) {
  const sigset_t set = set_of(number);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &set, &before);
  return before;
}

PROBE(pending_signals_come_at_once) {
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

static volatile sig_atomic_t g_handled;
static void handle(int number) { g_handled = number; }
static struct sigaction install(int number) {
  struct sigaction action, before;
  memset(&action, 0, sizeof action);
  action.sa_handler = handle;
  sigaction(number, &action, &before);
  g_handled = 0;
  return before;
}

/* The handler runs inside the call. After the call the signal mask is the old one. */
PROBE_IN(suspended_until_a_handler_ran, ANYWHERE & ~IN_HANDLER) {
  const sigset_t before = block(SIGUSR2);
  const struct sigaction action = install(SIGUSR2);
  sigset_t others, now;
  sigfillset(&others);
  sigdelset(&others, SIGUSR2);
  pthread_kill(pthread_self(), SIGUSR2);
  SHOW(sigsuspend(&others));
  pthread_sigmask(SIG_SETMASK, NULL, &now);
  say("  handled %d, blocked %d", g_handled == SIGUSR2, sigismember(&now, SIGUSR2));
  sigaction(SIGUSR2, &action, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int suspend_all(void) {
  sigset_t none;
  sigemptyset(&none);
  g_waiter = pthread_self();
  sigsuspend(&none);
  return errno;
}
static int pause_here(void) {
  g_waiter = pthread_self();
  pause();
  return errno;
}
static void prepare_handler(void) { install(SIGUSR2); }
static void after_handler(void) { say("  handled %d", g_handled == SIGUSR2); }
PROBE_IN(sigsuspend_blocks, ANYWHERE & ~IN_HANDLER) {
  static const struct Blocking blocking = {"sigsuspend", prepare_handler, suspend_all, release, after_handler, NULL};
  show_blocking(&blocking);
}
PROBE_IN(pause_blocks, ANYWHERE & ~IN_HANDLER) {
  static const struct Blocking blocking = {"pause", prepare_handler, pause_here, release, after_handler, NULL};
  show_blocking(&blocking);
}

/* A child does not have its parent's timer. But it must still get the signals that a thread sends, and the signals of
 * timers that it arms itself. */
static void wait_in_child(void) {
  const sigset_t set = set_of(SIGALRM);
  const struct itimerval soon = {{0, 0}, {0, 1000}};
  int number = 0;
  sigset_t others;
  sigfillset(&others);
  sigdelset(&others, SIGALRM);
  pthread_kill(pthread_self(), SIGALRM);
  SHOW(sigwait(&set, &number));
  SHOW(sigwait((const sigset_t*)8, &number));
  SHOW(sigsuspend((const sigset_t*)8));
  setitimer(ITIMER_REAL, &soon, NULL);
  SHOW(sigwaitinfo(&set, NULL) == SIGALRM);
  setitimer(ITIMER_REAL, &soon, NULL);
  install(SIGALRM);
  SHOW(sigsuspend(&others));
  pthread_sigmask(SIG_SETMASK, &others, NULL);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  say("  handled %d", g_handled == SIGALRM);
}
PROBE_IN(without_the_parents_timer, ANYWHERE & ~(IN_HANDLER | IN_CHILD | IN_WATCHED_CHILD)) {
  const struct itimerval later = {{0, 0}, {1000, 0}};
  const struct itimerval never = {{0, 0}, {0, 0}};
  struct itimerval left;
  const sigset_t before = block(SIGALRM);
  setitimer(ITIMER_REAL, &later, NULL);
  in_child(wait_in_child);
  getitimer(ITIMER_REAL, &left);
  SHOW(left.it_value.tv_sec > 900);
  setitimer(ITIMER_REAL, &never, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}
