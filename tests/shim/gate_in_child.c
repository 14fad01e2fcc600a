// One thread forks with --cure=quiesce-libc. The shim closes a gate: while it is closed, other threads begin no call of
// certain libc functions. The fork waits until such a call of another thread has returned. Meanwhile a third thread
// calls _Fork(). In the child of _Fork() no thread exists that would open the gate, so the shim must not leave the gate
// closed in this child.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "../../repro/baton.h"
#include "../../repro/call_of.h"

pid_t _Fork(void);

static int end_of_zone;
static int status_of_child = -1;

static void* read_zone(void* unused) {
  const time_t now = 1000000;
  if (localtime(&now) == NULL) abort();  // returns when the other end of the FIFO is closed
  return unused;
}

static void* fork_meanwhile(void* unused) {
  while (call_of(getpid()) != SYS_nanosleep) sched_yield();
  const pid_t child = _Fork();
  if (child == 0) {
    alarm(20);
    _exit(setenv("NAME", "value", 1) != 0);
  }
  status_of_child = end_of(child);
  close(end_of_zone);
  return unused;
}

int main(void) {
  char folder[] = "/tmp/forksight-gate-XXXXXX";
  char zone[64], value[80];
  pthread_t reader, other;
  if (mkdtemp(folder) == NULL) abort();
  snprintf(zone, sizeof zone, "%s/zone", folder);
  snprintf(value, sizeof value, ":%s", zone);
  if (mkfifo(zone, 0600) != 0) abort();
  setenv("TZ", value, 1);
  pthread_create(&reader, NULL, read_zone, NULL);
  end_of_zone = open(zone, O_WRONLY);  // returns when the reader has the other end open
  unlink(zone);
  rmdir(folder);
  pthread_create(&other, NULL, fork_meanwhile, NULL);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  const int status = end_of(child);
  pthread_join(other, NULL);
  pthread_join(reader, NULL);
  if (status != 0 || status_of_child != 0)
    printf("the child of fork() ended with %d, the child of _Fork() with %d\n", status, status_of_child);
  return status != 0 || status_of_child != 0;
}
