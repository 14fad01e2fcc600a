// Mechanism: a System V semaphore serves as a lock; a process takes it and is killed. The next one waits for it. With
//            -DHELD the process that took it lives, and sleeps.
// To blame:  the kill between taking and giving back, and that the kernel was not told to give it back (SEM_UNDO).
// User sees: all who need the lock stop, and new ones do, too: such semaphores outlive processes.
// Fix:       SEM_UNDO.
// Repaired:  it is taken with SEM_UNDO.
//
// EXPECT-BARE: hang
// EXPECT-NONE
// EXPECT-WHY: semaphore-abandoned possible may-hang victims=0
// EXPECT-NONE(held)
// EXPECT-WHY(held): none
#include <signal.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <time.h>

#include "../baton.h"

#ifdef REPAIRED
enum { kFlags = SEM_UNDO };
#else
enum { kFlags = 0 };
#endif
enum { kMode = 0621, kStaleS = 600 };  // a mode that nobody else gives to a set

union argument {
  int value;
  struct semid_ds* about;
};

// Sets of runs that were killed while they hung: nobody removes these.
static void remove_stale_sets(void) {
  struct semid_ds about;
  union argument into = {.about = &about};
  const int last = semctl(0, 0, SEM_INFO, (union argument){.about = (struct semid_ds*)&(struct seminfo){0}});
  for (int index = 0; index <= last; ++index) {
    const int set = semctl(index, 0, SEM_STAT, into);
    const int is_ours = set >= 0 && (about.sem_perm.mode & 0777) == kMode && about.sem_perm.uid == geteuid();
    if (is_ours && about.sem_otime < time(NULL) - kStaleS) semctl(set, 0, IPC_RMID);
  }
}

static int change(int set, int by) {
  struct sembuf operation = {0, (short)by, kFlags};
  return semop(set, &operation, 1);
}

int main(void) {
  remove_stale_sets();
  const int set = semget(IPC_PRIVATE, 1, IPC_CREAT | kMode);
  if (set < 0 || change(set, 1) != 0) return 1;
  struct baton is_taken = baton_make();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    change(set, -1);
    baton_pass(is_taken);
#ifdef HELD
    for (;;) pause();
#endif
    raise(SIGKILL);
  }
  baton_wait(is_taken);
#ifndef HELD
  if (end_of(child) != 128 + SIGKILL) return 1;
#endif
  const int status = change(set, -1);
  semctl(set, 0, IPC_RMID);
  return status == 0 ? 0 : 1;
}
