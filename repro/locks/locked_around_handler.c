// Mechanism: a worker waits for list_mutex when a signal handler takes log_mutex and leaves it locked; then it gets
//            list_mutex, too, and main forks. The child has both locked, but not the worker.
// To blame:  the fork, in a process with a thread that holds locks (and the handler, which may not lock).
// User sees: the child stops in its first line of log, at 0 % CPU; the parent waits for the child.
// Fix:       fork before the worker starts, or exec in the child, or hold log_mutex across the fork (pthread_atfork).
// Variant:   given-back: the handler leaves it unlocked, and the child uses the list.
// Repaired:  the worker has given both back before the fork.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-mutex proven hang lock=log_mutex holder=worker start=worker_main victims=1
// EXPECT(given-back): orphaned-mutex proven hang lock=list_mutex holder=worker start=worker_main victims=1
// EXPECT-STACK: culprit on_signal@log
// EXPECT-STACK(given-back): culprit worker_main@acquire
// EXPECT-STACK: stack main@touch
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "../baton.h"
#include "../call_of.h"

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
#ifdef GIVEN_BACK
static pthread_mutex_t* const used = &list_mutex;
#else
static pthread_mutex_t* const used = &log_mutex;
#endif
static atomic_int worker_tid;
static struct baton handled, worker_holds;

static void on_signal(int number) {
  (void)number;
  pthread_mutex_lock(&log_mutex);  // MARK: log
#ifdef GIVEN_BACK
  pthread_mutex_unlock(&log_mutex);
#endif
  baton_pass(handled);
}

static void* worker_main(void* unused) {
  pthread_setname_np(pthread_self(), "worker");
  // What the recorder keeps of earlier locks of this frame is one word off the truth below.
  pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&first);
  pthread_mutex_lock(&second);
  pthread_mutex_unlock(&second);
  pthread_mutex_unlock(&first);
  atomic_store(&worker_tid, (int)syscall(SYS_gettid));
  pthread_mutex_lock(&list_mutex);  // MARK: acquire
#ifdef REPAIRED
  pthread_mutex_unlock(&log_mutex);
  pthread_mutex_unlock(&list_mutex);
#endif
  baton_pass(worker_holds);
  park();
  return unused;
}

int main(void) {
  handled = baton_make();
  worker_holds = baton_make();
  const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  pthread_mutex_lock(&list_mutex);
  pthread_t worker;
  pthread_create(&worker, NULL, worker_main, NULL);
  while (atomic_load(&worker_tid) == 0 || call_of(atomic_load(&worker_tid)) != SYS_futex) {
  }
  pthread_kill(worker, SIGUSR1);
  baton_wait(handled);
  pthread_mutex_unlock(&list_mutex);
  baton_wait(worker_holds);
  const pid_t child = fork();
  if (child == 0) {
    pthread_mutex_lock(used);  // MARK: touch
    pthread_mutex_unlock(used);
    _exit(0);
  }
  return end_of(child);
}
