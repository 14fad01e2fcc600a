// Mechanism: a child locks a mutex in shared memory and ends while it holds the mutex.
// To blame:  the end of the child between lock and unlock. It may be a crash, a kill, or an exit on an error path.
// User sees: all other processes stop in that lock.
// Fix:       use a robust mutex: the next process that locks the mutex is informed.
// Repaired:  the mutex is robust. The parent gets EOWNERDEAD and goes on.
//
// EXPECT-BARE: hang
// EXPECT: abandoned-shared-lock proven hang victims=0
// EXPECT-CORE: none
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "../baton.h"

int main(void) {
  pthread_mutexattr_t kind;
  pthread_mutex_t* const lock = mmap(NULL, sizeof *lock, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
#ifdef REPAIRED
  pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
#endif
  pthread_mutex_init(lock, &kind);
  const pid_t child = fork();
  if (child == 0) {
    pthread_mutex_lock(lock);
    _exit(0);
  }
  if (end_of(child) != 0) return 1;
  const int error = pthread_mutex_lock(lock);
  if (error == EOWNERDEAD) pthread_mutex_consistent(lock);
  pthread_mutex_unlock(lock);
  return 0;
}
