// Mechanism: a System V semaphore is used as a lock. A process takes the semaphore and is killed. The next process
//            waits for the semaphore.
//            -DHELD:    the process that took the semaphore lives, and sleeps.
// To blame:  the kill between taking and releasing. Besides, the process did not use SEM_UNDO. With SEM_UNDO the kernel
//            would have released the semaphore.
// User sees: all processes that need the lock stop. Processes that are started later stop, too, because such semaphores
//            outlive processes.
// Fix:       use SEM_UNDO.
// Repaired:  the process takes the semaphore with SEM_UNDO.
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
enum { kMode = 0621, kStaleS = 600 };  // the unusual mode distinguishes the sets of this case from others

union argument {
  int value;
  struct semid_ds* about;
};

// A run that is killed while it hangs leaves its set behind. This function removes the sets of such earlier runs.
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
