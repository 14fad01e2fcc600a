// Mechanism: a timer is armed. Its signal is blocked, so that sigwait() can take it. The forked child has the signal
//            mask, but not the timer. The child waits for a signal that only the parent gets.
//            -DSUSPEND: the child waits by sigsuspend().
//            -DPOSIX:   timer_create() makes the timer.
//            -DHANG:    no process ends the child.
// To blame:  the fork. The child did not arm a timer of its own.
// User sees: a worker that never does the work that it should do every second.
// Fix:       arm the timer in the child, too.
// Repaired:  the child arms the timer, too.
//
// EXPECT-BARE: ok
// EXPECT: timer-lost likely may-hang culprit="the timer that sends SIGALRM" victims=0
// EXPECT-STACK: stack take_signal@sigwait
// EXPECT-STACK: fork main@fork
// EXPECT(suspend): timer-lost likely may-hang culprit="the timer that sends SIGALRM" victims=0
// EXPECT-STACK(suspend): stack take_signal@suspend
// EXPECT(posix): timer-lost possible may-hang culprit="the timer that sends SIGUSR1" victims=0
// EXPECT-STACK(posix): fork main@fork
// EXPECT-BARE(hang): hang
// EXPECT-UNKNOWN(hang): only the parent itself can ask which timers it has armed by alarm() or setitimer()
#include <sys/time.h>
#include <time.h>

#include "asleep_in.h"

#ifdef POSIX
enum { kSignal = SIGUSR1 };
#else
enum { kSignal = SIGALRM };
#endif

static void arm(long first_s, long first_ns) {
#ifdef POSIX
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = kSignal};
  const struct itimerspec times = {.it_value = {first_s, first_ns}};
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &times, NULL) != 0) abort();
#else
  const struct itimerval times = {.it_value = {first_s, first_ns / 1000}};
  if (setitimer(ITIMER_REAL, &times, NULL) != 0) abort();
#endif
}

#ifdef SUSPEND
static const long kCall = SYS_rt_sigsuspend;
static void note(int signal) { (void)signal; }
static void take_signal(void) {
  sigset_t others;
  sigfillset(&others);
  sigdelset(&others, kSignal);
  signal(kSignal, note);
  sigsuspend(&others);  // MARK: suspend
}
#else
static const long kCall = SYS_rt_sigtimedwait;
static void take_signal(void) {
  const sigset_t set = set_of(kSignal);
  int number = 0;
  if (sigwait(&set, &number) != 0 || number != kSignal) abort();  // MARK: sigwait
}
#endif

int main(void) {
  const sigset_t set = set_of(kSignal);
  sigprocmask(SIG_BLOCK, &set, NULL);
  arm(1000, 0);
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
#ifdef REPAIRED
    arm(0, 1000);
#endif
    take_signal();
    _exit(0);
  }
#if defined(REPAIRED) || defined(HANG)
  (void)kCall;
  return end_of(child);
#else
  wait_until_in(child, kCall);
  kill(child, SIGKILL);
  return end_of(child) == 128 + SIGKILL ? 0 : 1;
#endif
}
