// Mechanism: a signal comes while main is inside of localtime(), which holds libc's lock of the time zone. The handler
//            forks. The child calls localtime(), too, and waits for that lock. The interrupted call holds the lock.
//            This call is an outer frame of the child's own stack, so it cannot go on before the handler returns.
// To blame:  the fork in the signal handler.
// User sees: a crash reporter or a watchdog whose child hangs.
// Fix:       let the handler only set a flag, and fork outside of the handler.
// Repaired:  the child does not call localtime(). It writes a fixed text by write(2).
//
// EXPECT-BARE: hang
// EXPECT: fork-in-signal-handler proven hang lock=tzset_lock victims=1
// EXPECT-STACK: culprit main@inside
// EXPECT-STACK: stack stamp@touch on_signal@child
// EXPECT-CORE: fork-in-signal-handler likely hang
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <time.h>

#include "slow.h"

static char zone[256];
static volatile int end = -1;
static volatile int status = -1;

static __attribute__((noinline)) int stamp(void) {
#ifdef REPAIRED
  return write(STDOUT_FILENO, "now\n", 4) == 4 ? 0 : 1;
#else
  const time_t now = 0;
  const struct tm* const out = localtime(&now);  // MARK: touch
  return out == NULL ? 1 : 0;
#endif
}

static void on_signal(int number) {
  (void)number;
  const pid_t child = fork();
  if (child == 0) {
    const int result = stamp();  // MARK: child
    _exit(result);
  }
  status = end_of(child);
  close(end);  // now localtime() in main reads the end of the zone's file, and can return
}

static void* sender_main(void* unused) {
  int left = 0;
  end = open(zone, O_WRONLY);  // returns when main has opened the FIFO for reading; main then holds the lock
  // Once main has read these bytes, it is no longer inside of malloc(). If the signal came inside of malloc(), main
  // could hold malloc's lock, and fork() in the handler would wait for that lock.
  if (write(end, "TZif", 4) != 4) abort();
  while (ioctl(end, FIONREAD, &left) == 0 && left > 0) sched_yield();
  unlink(zone);
  syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1);
  park();
  return unused;
}

int main(void) {
  char folder[] = "/tmp/forksight-case-XXXXXX";
  char value[300];
  pthread_t sender;
  const time_t now = 0;
  const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigset_t signals;
  if (mkdtemp(folder) == NULL) abort();
  make_fifo(folder, "zone", zone);
  snprintf(value, sizeof value, ":%s", zone);
  setenv("TZ", value, 1);
  sigaction(SIGUSR1, &action, NULL);
  // The sender thread must not get the signal itself.
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  pthread_create(&sender, NULL, sender_main, NULL);
  pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
  const struct tm* const out = localtime(&now);  // MARK: inside
  rmdir(folder);
  return out == NULL ? 1 : status;
}
