// Mechanism: a thread is inside of a callback of dl_iterate_phdr(). While the callback runs, the thread holds the lock
//            of the loader's list of objects. The child walks that list, too. fork() resets the loader's other locks,
//            but not this one.
// To blame:  the fork in a process with threads. Profilers, crash handlers and garbage collectors walk that list.
// User sees: a child that hangs in dl_iterate_phdr() or in dlopen(), or where its profiler starts.
// Fix:       let the callback only copy the data, and do the work after the walk. Or exec in the child.
// Repaired:  the walk has ended before the fork.
//
// EXPECT-BARE: hang
// EXPECT: loader-lock-orphaned proven hang lock=_dl_load_write_lock holder=profiler start=profiler_main victims=1
// EXPECT-WHY: loader-lock-orphaned proven/likely hang lock=_dl_load_write_lock holder=profiler start=profiler_main victims=1
// EXPECT-STACK: culprit sample@walk profiler_main@call
// EXPECT-STACK: stack count_objects@touch main@child
// EXPECT-CORE: loader-lock-orphaned proven hang lock=_dl_load_write_lock start=profiler_main
#include <link.h>
#include <pthread.h>

#include "../baton.h"

static struct baton walk_has_begun;

static int symbolize(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)info, (void)size, (void)unused;
#ifndef REPAIRED
  baton_pass(walk_has_begun);
  park();
#endif
  return 1;
}

static __attribute__((noinline)) int sample(void) {
  const int result = dl_iterate_phdr(symbolize, NULL);  // MARK: walk
  return result + 1;
}

static void* profiler_main(void* unused) {
  pthread_setname_np(pthread_self(), "profiler");
  if (sample() == 0) abort();  // MARK: call
  baton_pass(walk_has_begun);
  park();
  return unused;
}

static int count(struct dl_phdr_info* info, size_t size, void* objects) {
  (void)info, (void)size;
  ++*(int*)objects;
  return 0;
}

static __attribute__((noinline)) int count_objects(void) {
  int objects = 0;
  dl_iterate_phdr(count, &objects);  // MARK: touch
  return objects;
}

int main(void) {
  pthread_t profiler;
  walk_has_begun = baton_make();
  pthread_create(&profiler, NULL, profiler_main, NULL);
  baton_wait(walk_has_begun);
  const pid_t child = fork();
  if (child == 0) {
    const int objects = count_objects();  // MARK: child
    _exit(objects > 0 ? 0 : 1);
  }
  return end_of(child);
}
