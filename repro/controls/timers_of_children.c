// Mechanism: none. Main forks while a timer is armed. All of the children are correct. One execs. One gets the timer's
//            signal from its parent. One waits with a deadline. One waits for either of two signals. One pauses until
//            its parent kills it. One has a timer of its own.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <sys/time.h>

#include "../kernel/asleep_in.h"

enum { kExecs, kIsSent, kHasDeadline, kWaitsForTwo, kPauses, kHasTimer, kKinds };

static void arm(long first_s, long first_us) {
  const struct itimerval times = {.it_value = {first_s, first_us}};
  if (setitimer(ITIMER_REAL, &times, NULL) != 0) abort();
}

static int live_as(int kind) {
  sigset_t set = set_of(SIGALRM);
  const struct timespec soon = {0, 1000 * 1000};
  int number = 0;
  switch (kind) {
    case kExecs: execl("/bin/true", "true", (char*)NULL); return 1;
    case kHasDeadline: return sigtimedwait(&set, NULL, &soon) == -1 ? 0 : 1;
    case kWaitsForTwo:
      sigaddset(&set, SIGTERM);
      sigprocmask(SIG_BLOCK, &set, NULL);
      return sigwait(&set, &number) == 0 && number == SIGTERM ? 0 : 1;
    case kPauses: pause(); return 1;
    case kHasTimer: arm(0, 1000); break;
    default: break;
  }
  return sigwait(&set, &number) == 0 && number == SIGALRM ? 0 : 1;
}

int main(void) {
  const sigset_t set = set_of(SIGALRM);
  int wrong = 0;
  sigprocmask(SIG_BLOCK, &set, NULL);
  arm(1000, 0);
  for (int kind = 0; kind < kKinds; ++kind) {
    const pid_t child = fork();
    if (child == 0) _exit(live_as(kind));
    if (kind == kPauses) wait_until_in(child, SYS_pause);
    if (kind == kIsSent || kind == kWaitsForTwo) wait_until_in(child, SYS_rt_sigtimedwait);
    if (kind == kIsSent) kill(child, SIGALRM);
    if (kind == kWaitsForTwo || kind == kPauses) kill(child, SIGTERM);
    wrong |= end_of(child) != (kind == kPauses ? 128 + SIGTERM : 0);
  }
  return wrong;
}
