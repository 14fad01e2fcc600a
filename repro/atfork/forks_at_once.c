// Mechanism: a library's prepare handler ends its worker thread, and its parent handler starts another one. The
//            handlers do not work if two threads fork at once. The first thread is about to join the worker. Before
//            that join, the second thread joins the worker, forks, and starts a new worker. The first thread then joins
//            the new worker, which does not end.
// To blame:  the library's handlers, and two forks at the same time. OpenBLAS and numpy had similar faults.
// User sees: a server that forks in several threads stops now and then in fork(), at 0 % CPU.
// Fix:       hold a mutex from the prepare handler to the parent handler. Or let one thread do all forks.
// Repaired:  the library holds such a mutex.
//
// EXPECT-BARE: hang
// EXPECT: atfork-handler-stuck proven hang culprit="prepare handler end_worker (1st of 1)" holder=worker
// EXPECT-STACK: stack end_worker@join
// EXPECT-STACK: fork fork_once@fork first_main@first
// EXPECT-RUN: --cure=serialise-forks outcome=none status=0 stdout="both have forked"
// EXPECT-CORE: atfork-handler-stuck likely/proven may-hang culprit="prepare handler end_worker"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "../baton.h"
#include "../call_of.h"

static pthread_t worker;
static atomic_int ended, stops, workers, first_tid, second_tid, second_is_inside, second_has_forked;
static struct baton first_is_inside;
#ifdef REPAIRED
static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;
#endif

static void* worker_main(void* unused) {
  pthread_setname_np(pthread_self(), "worker");
  atomic_fetch_add(&workers, 1);
  while (atomic_load(&stops) == 0) syscall(SYS_futex, &stops, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
  return unused;
}

static void start_worker(void) {
  atomic_store(&stops, 0);
  pthread_create(&worker, NULL, worker_main, NULL);
#ifdef REPAIRED
  pthread_mutex_unlock(&library);
#endif
}

// Returns when the second thread has forked. Also returns when that thread waits for a mutex, and so cannot join the
// worker yet. This mutex belongs to the library (REPAIRED) or to --cure=serialise-forks.
static void let_second_fork(void) {
  baton_pass(first_is_inside);
  while (!atomic_load(&second_has_forked)) {
    // If the second thread is in a futex wait, it waits for the mutex or joins the worker. The thread sets
    // `second_is_inside` before it joins. So this line reads the system call first, and then the flag. The flag shows
    // which of the two waits it is.
    if (call_of(atomic_load(&second_tid)) == SYS_futex && !atomic_load(&second_is_inside)) return;
    sched_yield();
  }
}

static void end_worker(void) {
#ifdef REPAIRED
  pthread_mutex_lock(&library);
#endif
  const int tid = (int)syscall(SYS_gettid);
  if (tid == atomic_load(&second_tid)) atomic_store(&second_is_inside, 1);
  atomic_store(&stops, 1);
  syscall(SYS_futex, &stops, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  if (tid == atomic_load(&first_tid)) let_second_fork();
  pthread_join(worker, NULL);  // MARK: join
  atomic_fetch_add(&ended, 1);
}

__attribute__((noinline)) static int fork_once(void) {
  const pid_t child = fork();  // MARK: fork
  if (child == 0) _exit(0);
  return end_of(child);
}

static void* first_main(void* unused) {
  atomic_store(&first_tid, (int)syscall(SYS_gettid));
  if (fork_once() != 0) abort();  // MARK: first
  return unused;
}

static void* second_main(void* unused) {
  atomic_store(&second_tid, (int)syscall(SYS_gettid));
  baton_wait(first_is_inside);
  if (fork_once() != 0) abort();
  while (atomic_load(&workers) < 2) sched_yield();  // until the new worker runs, and has its name
  atomic_store(&second_has_forked, 1);
  return unused;
}

int main(void) {
  pthread_t first, second;
  first_is_inside = baton_make();
  pthread_create(&worker, NULL, worker_main, NULL);
  pthread_atfork(end_worker, start_worker, NULL);
  pthread_create(&second, NULL, second_main, NULL);
  while (atomic_load(&second_tid) == 0) sched_yield();
  pthread_create(&first, NULL, first_main, NULL);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  puts("both have forked");
  return 0;
}
