// Mechanism: a worker thread holds table_mutex while main forks. The child locks the mutex with a deadline.
// To blame:  the fork, in a process with a thread that holds locks. The deadline only turns the hang into an error.
// User sees: every child says "the table is busy", although no thread works on the table.
// Fix:       fork before the worker starts, or exec in the child, or hold table_mutex across the fork (pthread_atfork).
// Repaired:  the prepare handler waits for the worker and locks the mutex. The parent handler and the child handler
//            unlock it.
//
// EXPECT-BARE: error
// EXPECT: orphaned-mutex proven error lock=table_mutex holder=writer start=writer_main victims=0
// EXPECT-STACK: culprit writer_main@acquire
// EXPECT-STACK: stack look_up@touch main@child
#include <pthread.h>
#include <time.h>

#include "../baton.h"

static pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct baton writer_holds;
#ifdef REPAIRED
static struct baton fork_begins;

static void prepare(void) {
  baton_pass(fork_begins);
  pthread_mutex_lock(&table_mutex);
}

static void release(void) { pthread_mutex_unlock(&table_mutex); }
#endif

static void* writer_main(void* unused) {
  pthread_setname_np(pthread_self(), "writer");
  pthread_mutex_lock(&table_mutex);  // MARK: acquire
  baton_pass(writer_holds);
#ifdef REPAIRED
  baton_wait(fork_begins);
  pthread_mutex_unlock(&table_mutex);
#endif
  park();
  return unused;
}

__attribute__((noinline)) static int look_up(void) {
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_nsec += 50 * 1000 * 1000;
  if (deadline.tv_nsec >= 1000 * 1000 * 1000) {
    deadline.tv_nsec -= 1000 * 1000 * 1000;
    ++deadline.tv_sec;
  }
  const int error = pthread_mutex_timedlock(&table_mutex, &deadline);  // MARK: touch
  if (error == 0) pthread_mutex_unlock(&table_mutex);
  return error;
}

int main(void) {
  pthread_t writer;
  writer_holds = baton_make();
#ifdef REPAIRED
  fork_begins = baton_make();
  pthread_atfork(prepare, release, release);
#endif
  pthread_create(&writer, NULL, writer_main, NULL);
  baton_wait(writer_holds);
  const pid_t child = fork();
  if (child == 0) {
    const int error = look_up();  // MARK: child
    _exit(error == 0 ? 0 : 1);
  }
  return end_of(child);
}
