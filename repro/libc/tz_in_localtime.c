// Mechanism: a thread is inside of localtime(), which holds libc's lock of the time zone while it reads the zone's
//            file. The child's localtime() takes the same lock. fork() does not reset it.
// To blame:  the fork in a process with threads, and the child's call before exec. Only async-signal-safe functions are
//            allowed there. The slow file (here a FIFO, elsewhere a file of a network file system) only makes the hang
//            more likely.
// User sees: a child that hangs while it writes a time stamp into a log.
// Fix:       get the time before the fork, or exec in the child.
// Repaired:  the parent forks after the thread has returned from localtime().
//
// EXPECT-BARE: hang
// EXPECT: libc-lock-in-flight proven hang lock=tzset_lock holder=clock start=clock_main victims=1
// EXPECT-WHY: libc-lock-in-flight proven/likely hang lock=tzset_lock holder=clock start=clock_main victims=1
// EXPECT-STACK: culprit read_clock@inside clock_main@call
// EXPECT-STACK: stack stamp@touch main@child
// EXPECT-CORE: libc-lock-in-flight proven hang start=clock_main
#include <time.h>

#include "slow.h"

static char zone[256];
static volatile int clock_tid;
static struct baton clock_is_ready;

static __attribute__((noinline)) int read_clock(void) {
  const time_t now = 0;
  const struct tm* const out = localtime(&now);  // MARK: inside
  return out == NULL ? 0 : out->tm_year;
}

static void* clock_main(void* unused) {
  pthread_setname_np(pthread_self(), "clock");
  clock_tid = (int)syscall(SYS_gettid);
  baton_pass(clock_is_ready);
  if (read_clock() == 0) abort();  // MARK: call
  baton_pass(clock_is_ready);
  park();
  return unused;
}

static __attribute__((noinline)) int stamp(void) {
  const time_t now = 0;
  const struct tm* const out = localtime(&now);  // MARK: touch
  return out == NULL ? 1 : 0;
}

int main(void) {
  char folder[] = "/tmp/forksight-case-XXXXXX";
  char value[300];
  pthread_t thread;
  if (mkdtemp(folder) == NULL) abort();
  make_fifo(folder, "zone", zone);
  snprintf(value, sizeof value, ":%s", zone);
  setenv("TZ", value, 1);
  clock_is_ready = baton_make();
  pthread_create(&thread, NULL, clock_main, NULL);
  baton_wait(clock_is_ready);
  // Returns when the thread has opened the other end. The thread then holds the lock, in read(), until this end is
  // closed.
  const int end = open(zone, O_WRONLY);
  unlink(zone);
  rmdir(folder);
#ifdef REPAIRED
  close(end);
  baton_wait(clock_is_ready);
#endif
  const pid_t child = fork();
  if (child == 0) _exit(stamp());  // MARK: child
  const int status = end_of(child);
  return end < 0 ? 1 : status;
}
