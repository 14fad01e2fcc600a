// Mechanism: a child handler polls until another thread has noticed the fork. That thread was not copied.
// To blame:  the library's child handler.
// User sees: fork() never returns in the child, which uses 100 % CPU.
// Fix:       the handler must not wait for another thread: the child has only one.
// Repaired:  the child handler itself does what the other thread would have done.
//
// EXPECT-BARE: spin
// EXPECT: atfork-child-stuck likely/proven hang culprit="child handler wait_for_worker (1st of 1)" library=child_spins victims=0
// EXPECT-STACK: fork main@fork
// EXPECT-WHY: atfork-child-stuck likely/proven hang culprit="child handler wait_for_worker"
// EXPECT-CORE: none
#include <pthread.h>

#include "../baton.h"

static int noticed;

static void wait_for_worker(void) {
#ifdef REPAIRED
  noticed = 1;
#endif
  while (__atomic_load_n(&noticed, __ATOMIC_ACQUIRE) == 0) {
  }
}

static void* worker_main(void* unused) {
  park();
  return unused;
}

int main(void) {
  pthread_t worker;
  pthread_atfork(NULL, NULL, wait_for_worker);
  pthread_create(&worker, NULL, worker_main, NULL);
  const pid_t child = fork();  // MARK: fork
  if (child == 0) _exit(0);
  return end_of(child);
}
