// Mechanism: none. Another thread holds a mutex, a rwlock, a semaphore and a spinlock while main forks. The child
//            execs: the new program has none of these locks.
// To blame:  nobody. Every program with threads does the same when it starts a command.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <pthread.h>
#include <semaphore.h>

#include "../baton.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static sem_t semaphore;
static struct baton all_held;

static void* holder_main(void* unused) {
  pthread_mutex_lock(&mutex);
  pthread_rwlock_wrlock(&rwlock);
  pthread_spin_lock(&spinlock);
  sem_wait(&semaphore);
  baton_pass(all_held);
  park();
  return unused;
}

int main(void) {
  pthread_t holder;
  all_held = baton_make();
  pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE);
  sem_init(&semaphore, 0, 1);
  pthread_create(&holder, NULL, holder_main, NULL);
  baton_wait(all_held);
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/true", "true", (char*)NULL);
    _exit(127);
  }
  return end_of(child);
}
