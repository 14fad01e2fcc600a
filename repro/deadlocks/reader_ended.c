// Mechanism: a thread locks a rwlock for reading and ends without unlocking it. A rwlock does not record which threads
//            read.
// To blame:  the thread, which ends without unlocking.
// User sees: a thread that wants to write waits for ever. No thread that reads exists.
// Fix:       unlock on every way out of a thread.
// Repaired:  the thread unlocks the rwlock before it ends.
//
// EXPECT-BARE: hang
// EXPECT: rwlock-upgrade proven/possible hang lock=table_lock victims=0
// EXPECT-CORE: rwlock-upgrade proven/possible hang lock=table_lock
#include <pthread.h>
#include <stddef.h>

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static int entries;

static void* look_up_main(void* found) {
  pthread_rwlock_rdlock(&table_lock);
  *(int*)found = entries;
#ifdef REPAIRED
  pthread_rwlock_unlock(&table_lock);
#endif
  return found;
}

int main(void) {
  pthread_t reader;
  int found = 1;
  pthread_create(&reader, NULL, look_up_main, &found);
  pthread_join(reader, NULL);
  pthread_rwlock_wrlock(&table_lock);
  entries = found + 1;
  pthread_rwlock_unlock(&table_lock);
  return entries == 1 ? 0 : 1;
}
