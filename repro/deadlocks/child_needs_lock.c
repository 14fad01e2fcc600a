// Mechanism: a process holds a mutex in shared memory while it waits for the end of its child. The child needs that
//            mutex.
//            -DPIPE:    a thread holds a mutex of its own process while it waits for the end of a child. Main needs
//                       that mutex before it writes what the child reads.
// To blame:  the process that waits for its child while it holds the lock.
// User sees: parent and child stop, the parent in waitpid(), the child in a lock or in read().
// Fix:       release the lock before waiting for the child.
// Repaired:  the lock is released first.
//
// EXPECT-BARE: hang
// EXPECT: join-cycle proven hang victims=0
// EXPECT(pipe): pipe-deadlock proven hang victims=0
#include <pthread.h>
#include <sys/mman.h>

#include "../baton.h"

#ifdef PIPE
static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
static struct baton waiter_has_it;
static pid_t child;

static void* waiter_main(void* unused) {
  pthread_mutex_lock(&state_lock);
  baton_pass(waiter_has_it);
#ifdef REPAIRED
  pthread_mutex_unlock(&state_lock);
#endif
  end_of(child);
#ifndef REPAIRED
  pthread_mutex_unlock(&state_lock);
#endif
  return unused;
}

int main(void) {
  pthread_t waiter;
  struct baton input = baton_make();
  child = fork();
  if (child == 0) {
    close(input.end[1]);
    baton_wait(input);
    _exit(0);
  }
  waiter_has_it = baton_make();
  pthread_create(&waiter, NULL, waiter_main, NULL);
  baton_wait(waiter_has_it);
  pthread_mutex_lock(&state_lock);
  baton_pass(input);
  pthread_mutex_unlock(&state_lock);
  pthread_join(waiter, NULL);
  return 0;
}
#else
int main(void) {
  pthread_mutex_t* const state_lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t shared;
  pthread_mutexattr_init(&shared);
  pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(state_lock, &shared);
  pthread_mutex_lock(state_lock);
  const pid_t child = fork();
  if (child == 0) {
    pthread_mutex_lock(state_lock);
    pthread_mutex_unlock(state_lock);
    _exit(0);
  }
#ifdef REPAIRED
  pthread_mutex_unlock(state_lock);
#endif
  return end_of(child);
}
#endif
