// Mechanism: a function locks a mutex and calls another function, which locks the same mutex.
// To blame:  the inner call. The inner function is made for callers that do not hold the lock.
// User sees: the thread stops in the inner function, at its first line.
// Fix:       call an inner function that expects the lock to be held.
// Repaired:  the mutex is recursive.
//
// EXPECT-BARE: hang
// EXPECT: self-deadlock proven hang lock=table_lock holder=keeper victims=0
// EXPECT-CORE: self-deadlock proven hang lock=table_lock
#include <pthread.h>

#include "../baton.h"

static pthread_mutex_t table_lock;
static int entries;

static int count_entries(void) {
  pthread_mutex_lock(&table_lock);
  const int count = entries;
  pthread_mutex_unlock(&table_lock);
  return count;
}

static void* keeper_main(void* unused) {
  pthread_setname_np(pthread_self(), "keeper");
  pthread_mutex_lock(&table_lock);
  ++entries;
  if (count_entries() > 100) entries = 0;
  pthread_mutex_unlock(&table_lock);
  return unused;
}

int main(void) {
  pthread_t keeper;
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
#ifdef REPAIRED
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
#endif
  pthread_mutex_init(&table_lock, &kind);
  pthread_create(&keeper, NULL, keeper_main, NULL);
  pthread_join(keeper, NULL);
  return entries == 1 ? 0 : 1;
}
