// Mechanism: a semaphore with the initial value 1 is used as a lock. A worker thread holds this lock while main forks.
//            In the child the value of the semaphore stays 0.
// To blame:  the fork, in a process with another thread that holds locks. The memory of a semaphore records no owner.
// User sees: the child stops in sem_wait() with a count of 0. The locks of CPython up to 3.12 look the same.
// Fix:       fork before the worker starts, or exec in the child, or re-initialise the semaphore in a child handler.
// Repaired:  a child handler re-initialises the semaphore.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-semaphore proven/likely hang lock=import_lock holder=importer start=importer_main victims=1
// EXPECT-STACK: culprit import_module@acquire importer_main@import
// EXPECT-STACK: stack load_plugin@touch main@child
// EXPECT-CURED: --on-orphan=recover stdout="child: went on"
// EXPECT-CURED: --cure=auto,orphans stdout="child: went on"
// EXPECT-RUN: --on-orphan=recover outcome=cured status=0 says="the data that the lock protects may be half-changed"
// EXPECT-RUN: --on-orphan=abort outcome=error status=134 says="fails instead of hanging"
// EXPECT-WHY: orphaned-semaphore proven/possible hang lock=import_lock victims=1
// EXPECT-CORE: none
#include <pthread.h>
#include <semaphore.h>

#include "../baton.h"

static sem_t import_lock;
static int modules = 0;
static struct baton importer_is_inside;

#ifdef REPAIRED
static void forget_the_importer(void) { sem_init(&import_lock, 0, 1); }
#endif

__attribute__((noinline)) static int import_module(void) {
  sem_wait(&import_lock);  // MARK: acquire
  ++modules;
  baton_pass(importer_is_inside);
  park();
  sem_post(&import_lock);
  return modules;
}

static void* importer_main(void* unused) {
  pthread_setname_np(pthread_self(), "importer");
  modules += import_module();  // MARK: import
  return unused;
}

__attribute__((noinline)) static int load_plugin(void) {
  sem_wait(&import_lock);  // MARK: touch
  const int loaded = ++modules;
  sem_post(&import_lock);
  return loaded;
}

int main(void) {
  pthread_t importer;
  importer_is_inside = baton_make();
  sem_init(&import_lock, 0, 1);
#ifdef REPAIRED
  pthread_atfork(NULL, NULL, forget_the_importer);
#endif
  pthread_create(&importer, NULL, importer_main, NULL);
  baton_wait(importer_is_inside);
  const pid_t child = fork();
  if (child == 0) {
    const int loaded = load_plugin();  // MARK: child
    printf("child: went on\n");
    fflush(stdout);
    _exit(loaded > 0 ? 0 : 1);
  }
  return end_of(child);
}
