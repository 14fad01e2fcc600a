// Mechanism: a library's prepare handler joins the library's worker thread. The worker is in the middle of a job. That
//            job waits for the thread that forks.
// To blame:  fork() while the library works. OpenBLAS's handler joins its workers in the same way.
// User sees: the parent stops in fork(), at 0 % CPU. There is no child yet.
// Fix:       fork while the library is idle, or use posix_spawn(), which calls no handlers.
// Repaired:  the job is done before the fork.
//
// EXPECT-BARE: hang
// EXPECT: atfork-handler-stuck proven hang culprit="prepare handler end_worker (1st of 1)" holder=worker start=worker_main
// EXPECT-STACK: culprit main@create
// EXPECT-STACK: stack end_worker@join
// EXPECT-STACK: fork main@fork
// EXPECT-CORE: atfork-handler-stuck likely/proven may-hang culprit="prepare handler end_worker"
#include <pthread.h>

#include "../baton.h"

static pthread_t worker;
static int answer_came;
static struct baton works;

static int ended;

static void end_worker(void) {
  pthread_join(worker, NULL);  // MARK: join
  ++ended;
}

static void* worker_main(void* unused) {
  pthread_setname_np(pthread_self(), "worker");
  baton_pass(works);
  while (__atomic_load_n(&answer_came, __ATOMIC_ACQUIRE) == 0)
    syscall(SYS_futex, &answer_came, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
  return unused;
}

static void answer(void) {
  __atomic_store_n(&answer_came, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &answer_came, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

int main(void) {
  works = baton_make();
  pthread_atfork(end_worker, NULL, NULL);
  pthread_create(&worker, NULL, worker_main, NULL);  // MARK: create
  baton_wait(works);
#ifdef REPAIRED
  answer();
#endif
  const pid_t child = fork();  // MARK: fork
  if (child == 0) _exit(0);
  answer();
  return end_of(child);
}
