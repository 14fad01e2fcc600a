// Mechanism: as in tz_in_localtime, a thread is inside of localtime() at the fork, and the child calls localtime(). But
//            here the call of that thread ends by itself a moment later. So a fork that waits for the end of the call
//            loses nothing.
// To blame:  the fork in a process with threads, and the child's call before exec.
// User sees: a child that hangs now and then. The child hangs more often if the disk is slow.
// Fix:       get the time before the fork, or exec in the child.
// Repaired:  the parent forks after the thread has returned from localtime().
//
// EXPECT-BARE: hang
// EXPECT: libc-lock-in-flight proven hang lock=tzset_lock holder=clock start=clock_main victims=1
// EXPECT-WHY: libc-lock-in-flight proven/likely hang lock=tzset_lock holder=clock start=clock_main victims=1
// EXPECT-STACK: culprit clock_main@inside
// EXPECT-STACK: stack main@touch
// EXPECT-CURED: --cure=quiesce-libc=20000 stdout="child: 1970"
// EXPECT-CORE: libc-lock-in-flight proven/likely hang lock=tzset_lock
#include <time.h>

#include "slow.h"

static char zone[256];
static int end;
static struct baton ready;

static void* clock_main(void* unused) {
  const time_t now = 1000000;
  pthread_setname_np(pthread_self(), "clock");
  if (localtime(&now) == NULL) abort();  // MARK: inside
  baton_pass(ready);
  park();
  return unused;
}

// Ends the zone's file as soon as main waits. Under --cure=quiesce-libc main waits for the end of the call. Without the
// cure main waits for its child.
static void* disk_main(void* unused) {
  long call = 0;
  unsigned long second;
  pthread_setname_np(pthread_self(), "disk");
  baton_wait(ready);
  while (call != SYS_nanosleep && call != SYS_wait4) {
    call = call_of(getpid(), &second);
    sched_yield();
  }
  close(end);
  park();
  return unused;
}

int main(void) {
  char folder[] = "/tmp/forksight-case-XXXXXX";
  char value[300];
  pthread_t clock, disk;
  const time_t now = 1000000;
  if (mkdtemp(folder) == NULL) abort();
  make_fifo(folder, "zone", zone);
  snprintf(value, sizeof value, ":%s", zone);
  setenv("TZ", value, 1);
  ready = baton_make();
#ifndef REPAIRED
  pthread_create(&disk, NULL, disk_main, NULL);
#endif
  pthread_create(&clock, NULL, clock_main, NULL);
  end = open(zone, O_WRONLY);  // the thread has opened the other end, and reads from it while it holds the lock
  unlink(zone);
  rmdir(folder);
#ifdef REPAIRED
  (void)disk, (void)disk_main;
  close(end);
  baton_wait(ready);
#else
  baton_pass(ready);
#endif
  const pid_t child = fork();
  if (child == 0) {
    const struct tm* const out = localtime(&now);  // MARK: touch
    printf("child: %d\n", out == NULL ? 0 : 1900 + out->tm_year);
    fflush(stdout);
    _exit(0);
  }
  return end_of(child);
}
