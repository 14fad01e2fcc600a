// Mechanism: a worker thread holds config_lock for reading while main forks. The child locks config_lock for writing,
//            and waits for that reader.
// To blame:  the fork, in a process with another thread that holds locks. glibc does not record which threads read.
// User sees: children that read the configuration work. A child that wants to change it stops.
// Fix:       fork before the worker starts, or exec in the child, or re-initialise the lock in a child handler.
// Repaired:  the child only reads. A lost reader does not block other readers.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-rwlock proven hang lock=config_lock holder=reader start=reader_main victims=1
// EXPECT-STACK: culprit read_config@acquire reader_main@read
// EXPECT-STACK: stack change_config@touch main@child
// EXPECT-CURED: --on-orphan=recover stdout="child: went on"
// EXPECT-CURED: --cure=auto,orphans stdout="child: went on"
// EXPECT-RUN: --on-orphan=recover outcome=cured status=0 says="the data that the lock protects may be half-changed"
// EXPECT-RUN: --on-orphan=abort outcome=error status=134 says="fails instead of hanging"
// EXPECT-WHY: orphaned-rwlock proven/possible hang lock=config_lock victims=1
// EXPECT-CORE: orphaned-rwlock proven/possible hang lock=config_lock start=reader_main
#include <pthread.h>

#include "../baton.h"

static pthread_rwlock_t config_lock = PTHREAD_RWLOCK_INITIALIZER;
static int config = 1;
static struct baton reader_is_inside;

__attribute__((noinline)) static int read_config(void) {
  pthread_rwlock_rdlock(&config_lock);  // MARK: acquire
  const int seen = config;
  baton_pass(reader_is_inside);
  park();
  pthread_rwlock_unlock(&config_lock);
  return seen;
}

static void* reader_main(void* unused) {
  pthread_setname_np(pthread_self(), "reader");
  config += read_config();  // MARK: read
  return unused;
}

__attribute__((noinline)) static int change_config(void) {
#ifdef REPAIRED
  pthread_rwlock_rdlock(&config_lock);
#else
  pthread_rwlock_wrlock(&config_lock);  // MARK: touch
#endif
  const int seen = config;
  pthread_rwlock_unlock(&config_lock);
  return seen;
}

int main(void) {
  pthread_t reader;
  reader_is_inside = baton_make();
  pthread_create(&reader, NULL, reader_main, NULL);
  baton_wait(reader_is_inside);
  const pid_t child = fork();
  if (child == 0) {
    const int seen = change_config();  // MARK: child
    printf("child: went on\n");
    fflush(stdout);
    _exit(seen == 1 ? 0 : 1);
  }
  return end_of(child);
}
