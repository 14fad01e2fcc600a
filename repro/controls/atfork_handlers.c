// Mechanism: none. A worker holds a normal mutex when main calls fork(). The library's handlers do what POSIX advises.
//            The prepare handler waits for the mutex and locks it. The parent handler and the child handler unlock it.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <pthread.h>

#include "../baton.h"

static pthread_mutex_t pool_mutex = PTHREAD_MUTEX_INITIALIZER;
static int buffers = 0;
static struct baton worker_is_inside;
static struct baton fork_begins;

static void prepare(void) {
  baton_pass(fork_begins);
  pthread_mutex_lock(&pool_mutex);
}

static void release(void) { pthread_mutex_unlock(&pool_mutex); }

static void* worker_main(void* unused) {
  pthread_mutex_lock(&pool_mutex);
  baton_pass(worker_is_inside);
  baton_wait(fork_begins);
  ++buffers;
  pthread_mutex_unlock(&pool_mutex);
  park();
  return unused;
}

int main(void) {
  pthread_t worker;
  worker_is_inside = baton_make();
  fork_begins = baton_make();
  pthread_atfork(prepare, release, release);
  pthread_create(&worker, NULL, worker_main, NULL);
  baton_wait(worker_is_inside);
  const pid_t child = fork();
  pthread_mutex_lock(&pool_mutex);
  const int seen = buffers;
  pthread_mutex_unlock(&pool_mutex);
  if (child == 0) _exit(seen == 1 ? 0 : 1);
  return end_of(child);
}
