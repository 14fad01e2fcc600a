// Mechanism: a worker waits for list_mutex. During that wait a signal handler locks log_mutex in the worker, and
//            returns without unlocking it. Then the worker gets list_mutex, too, and main forks. In the child both
//            mutexes are locked, and there is no worker.
// To blame:  the fork, in a process with another thread that holds locks. Besides, a signal handler must not lock.
// User sees: the child stops at the first line that it writes into the log, at 0 % CPU. The parent waits for the child.
// Fix:       fork before the worker starts, or exec in the child, or hold log_mutex across the fork (pthread_atfork).
// Variant:   given-back: the handler unlocks log_mutex. The child then hangs in list_mutex.
// Repaired:  the worker has unlocked both mutexes before the fork.
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
  // These calls leave old entries in the shim's list of held locks. An old entry has the same frame as the lock of
  // list_mutex below. The shim must not take an old entry for the entry of list_mutex.
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
