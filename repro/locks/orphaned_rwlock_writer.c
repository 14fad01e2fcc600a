// Mechanism: a worker thread holds config_lock for writing while main forks. In the child even readers wait for that
//            writer.
// To blame:  the fork, in a process with a thread that holds locks.
// User sees: the child stops where it first reads the configuration.
// Fix:       fork before the worker starts, or exec in the child, or re-initialise the lock in a child handler.
// Repaired:  a child handler re-initialises the lock and the data that the lock guards.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-rwlock proven hang lock=config_lock holder=writer start=writer_main victims=1
// EXPECT-STACK: culprit reload_config@acquire writer_main@reload
// EXPECT-STACK: stack read_config@touch main@child
// EXPECT-CURED: --on-orphan=recover stdout="child: went on"
// EXPECT-CURED: --cure=auto,orphans stdout="child: went on"
// EXPECT-RUN: --on-orphan=recover outcome=cured status=0 says="the data that the lock protects may be half-changed"
// EXPECT-RUN: --on-orphan=abort outcome=error status=134 says="fails instead of hanging"
// EXPECT-CORE: orphaned-rwlock proven hang lock=config_lock start=writer_main
#include <pthread.h>

#include "../baton.h"

static pthread_rwlock_t config_lock = PTHREAD_RWLOCK_INITIALIZER;
static int config = 1;
static struct baton writer_is_inside;

#ifdef REPAIRED
static void forget_the_writer(void) {
  pthread_rwlock_init(&config_lock, NULL);
  config = 1;
}
#endif

__attribute__((noinline)) static int reload_config(void) {
  pthread_rwlock_wrlock(&config_lock);  // MARK: acquire
  config = 1;
  baton_pass(writer_is_inside);
  park();
  pthread_rwlock_unlock(&config_lock);
  return config;
}

static void* writer_main(void* unused) {
  pthread_setname_np(pthread_self(), "writer");
  config += reload_config();  // MARK: reload
  return unused;
}

__attribute__((noinline)) static int read_config(void) {
  pthread_rwlock_rdlock(&config_lock);  // MARK: touch
  const int seen = config;
  pthread_rwlock_unlock(&config_lock);
  return seen;
}

int main(void) {
  pthread_t writer;
  writer_is_inside = baton_make();
#ifdef REPAIRED
  pthread_atfork(NULL, NULL, forget_the_writer);
#endif
  pthread_create(&writer, NULL, writer_main, NULL);
  baton_wait(writer_is_inside);
  const pid_t child = fork();
  if (child == 0) {
    const int seen = read_config();  // MARK: child
    printf("child: went on\n");
    fflush(stdout);
    _exit(seen == 1 ? 0 : 1);
  }
  return end_of(child);
}
