// Mechanism: a reader finds that it must write. So it locks a rwlock for writing while it holds this rwlock for
//            reading.
// To blame:  the second lock. A writer waits until all readers have left, and this thread itself is a reader.
// User sees: the program stops at the first write.
// Fix:       unlock before locking for writing, and then read the data again.
// Repaired:  the reader unlocks the rwlock before it locks it for writing.
//
// EXPECT-BARE: hang
// EXPECT: rwlock-upgrade proven hang lock=table_lock victims=0
// EXPECT(threads): rwlock-upgrade proven/possible hang lock=table_lock victims=0
// EXPECT-WHY(threads): rwlock-upgrade proven/possible hang lock=table_lock victims=0
// EXPECT-CORE: rwlock-upgrade proven hang lock=table_lock
// EXPECT-CORE(threads): rwlock-upgrade proven/possible hang lock=table_lock
#include <pthread.h>

#include "../baton.h"

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static int entries;

static void* look_up(void* unused) {
  pthread_rwlock_rdlock(&table_lock);
  if (entries == 0) {
#ifdef REPAIRED
    pthread_rwlock_unlock(&table_lock);
#endif
    pthread_rwlock_wrlock(&table_lock);
    ++entries;
  }
  pthread_rwlock_unlock(&table_lock);
  return unused;
}

int main(void) {
#ifdef THREADS
  pthread_t other;
  pthread_create(&other, NULL, look_up, NULL);
  pthread_join(other, NULL);
#else
  look_up(NULL);
#endif
  return entries == 1 ? 0 : 1;
}
