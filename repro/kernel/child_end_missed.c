// Mechanism: a process checks whether its child has ended, and then sleeps in pause() until SIGCHLD comes. The child
//            ends between the check and pause(): the signal comes before the sleep.
//            -DOTHER:   the process has waited for its child, and then sleeps until another signal comes.
// To blame:  the gap between the check and the sleep.
// User sees: now and then the program stops. Its child is a zombie.
// Fix:       block SIGCHLD before the check, and sleep with sigsuspend().
// Repaired:  the process blocks SIGCHLD before the check, and sleeps with sigsuspend().
//
// EXPECT-BARE: hang
// EXPECT-NONE
// EXPECT-WHY: child-end-missed possible may-hang victims=0
// EXPECT-NONE(other)
// EXPECT-WHY(other): none
#include <signal.h>

#include "../baton.h"

static volatile sig_atomic_t has_ended;

static void note_end(int signal) {
  (void)signal;
  has_ended = 1;
}

#ifndef OTHER
// Returns when the child has ended, and SIGCHLD has come. The child stays a zombie.
static void await_end(pid_t child) {
  siginfo_t about;
  if (waitid(P_PID, (id_t)child, &about, WEXITED | WNOWAIT) != 0) abort();
}
#endif

int main(void) {
  sigset_t children, before;
  signal(SIGCHLD, note_end);
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
#ifdef REPAIRED
  sigprocmask(SIG_BLOCK, &children, &before);
#else
  (void)before;
#endif
  const struct baton asked = baton_make();
  const pid_t child = fork();
  if (child == 0) {
    baton_wait(asked);
    _exit(0);
  }
#ifdef REPAIRED
  baton_pass(asked);
  await_end(child);
  while (!has_ended) sigsuspend(&before);
#elif defined(OTHER)
  baton_pass(asked);
  if (end_of(child) != 0) return 1;
  pause();
#else
  if (has_ended == 0) {
    baton_pass(asked);
    await_end(child);
    pause();
  }
#endif
  return end_of(child);
}
