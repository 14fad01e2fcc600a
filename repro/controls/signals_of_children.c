// Mechanism: none. Main forks while another thread takes SIGTERM by sigwait(). All of the children are correct. One
//            unblocks the signal, and the signal kills this child. One takes the signal later. One reads the signal
//            from a signalfd. One execs. One gets no signal.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <sys/signalfd.h>

#include "../kernel/signal_thread.h"

static void* taker_main(void* unused) {
  const sigset_t ends = set_of(SIGTERM);
  int signal = 0;
  taker_tid = gettid();
  baton_pass(taker_says);
  sigwait(&ends, &signal);
  return unused;
}

static int live_as(int kind, struct baton sent) {
  const sigset_t ends = set_of(SIGTERM);
  int signal = 0;
  baton_wait(sent);
  switch (kind) {
    case 0: pthread_sigmask(SIG_UNBLOCK, &ends, NULL); return 1;
    case 1: return sigwait(&ends, &signal) == 0 && signal == SIGTERM ? 0 : 1;
    case 2: {
      struct signalfd_siginfo info;
      const int fd = signalfd(-1, &ends, SFD_CLOEXEC);
      return read(fd, &info, sizeof info) == sizeof info && info.ssi_signo == SIGTERM ? 0 : 1;
    }
    case 3: execl("/bin/true", "true", (char*)NULL); return 1;
    default: return 0;
  }
}

int main(void) {
  const sigset_t ends = set_of(SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, NULL);
  start_taker(taker_main);
  wait_until_taking();
  int wrong = 0;
  for (int kind = 0; kind < 5; ++kind) {
    const struct baton sent = baton_make();
    const pid_t child = fork();
    if (child == 0) _exit(live_as(kind, sent));
    if (kind < 4) kill(child, SIGTERM);
    baton_pass(sent);
    wrong |= end_of(child) != (kind == 0 ? 128 + SIGTERM : 0);
  }
  return wrong;
}
