// Mechanism: a rwlock prefers writers. A thread holds the rwlock for reading, and a writer waits. The thread locks the
//            rwlock for reading once more.
// To blame:  the second lock for reading. It waits for the writer, and the writer waits until the first lock is
//            released.
// User sees: readers stop as soon as a thread wants to write.
// Fix:       lock for reading once.
// Repaired:  the lock prefers readers, so the thread may lock it for reading again.
//
// EXPECT-BARE: hang
// EXPECT: rwlock-recursive-read proven/possible hang lock=table_lock victims=0
// EXPECT-WHY: rwlock-recursive-read proven/possible hang lock=table_lock victims=0
// EXPECT-CORE: rwlock-recursive-read proven/possible hang lock=table_lock
#include <pthread.h>
#include <sched.h>
#include <stddef.h>

#ifdef REPAIRED
static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
#else
static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
#endif
static int entries;

static void* write_entry(void* unused) {
  pthread_rwlock_wrlock(&table_lock);
  ++entries;
  pthread_rwlock_unlock(&table_lock);
  return unused;
}

// Returns when the writer waits: from then on the lock admits no reader.
static void await_writer(void) {
#ifndef REPAIRED
  while (pthread_rwlock_tryrdlock(&table_lock) == 0) {
    pthread_rwlock_unlock(&table_lock);
    sched_yield();
  }
#endif
}

__attribute__((noinline)) static int look_up(void) {
  pthread_rwlock_rdlock(&table_lock);
  const int found = entries;
  pthread_rwlock_unlock(&table_lock);
  return found;
}

int main(void) {
  pthread_t writer;
  pthread_rwlock_rdlock(&table_lock);
  pthread_create(&writer, NULL, write_entry, NULL);
  await_writer();
  const int found = look_up();
  pthread_rwlock_unlock(&table_lock);
  pthread_join(writer, NULL);
  return found == 0 && entries == 1 ? 0 : 1;
}
