// Functions that the scenes with known lock orders share. The threads of a scene run one after the other, so that no
// scene hangs. Pipes force this order, and the shim does not watch pipes. The shim sees only operations on locks, and
// the calls that start and join threads. forksight must find out from these events alone which lock orders could occur
// at the same time.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../repro/baton.h"

struct scene {
  const char* name;
  void (*play)(void);
};
extern const struct scene harmless_scenes[], inverted_scenes[];

typedef void* (*work)(void*);

static inline pthread_t begin(work of) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, of, NULL) != 0) abort();
  return thread;
}
static inline void end(pthread_t thread) {
  if (pthread_join(thread, NULL) != 0) abort();
}
// Makes and joins a thread. About half of the time pthread_join() is called before the thread runs its first
// instruction.
static inline void run(work of) { end(begin(of)); }

// A second thread that only waits. If a process never had a second thread, forksight ignores the locks of its main
// thread.
static struct baton idle_done;
static inline void* idle(void* unused) {
  baton_wait(idle_done);
  return unused;
}
static inline pthread_t begin_idle(void) {
  idle_done = baton_make();
  return begin(idle);
}
static inline void end_idle(pthread_t thread) {
  baton_pass(idle_done);
  end(thread);
}

// Runs the threads one after the other. A thread starts when the previous thread has called end_turn(). All threads
// exist until the last thread has called end_turn().
static struct baton turn_done, turns_over;
static inline void end_turn(void) {
  baton_pass(turn_done);
  baton_wait(turns_over);
}
static inline void take_turns(const work* of, int count) {
  pthread_t threads[8];
  turn_done = baton_make();
  turns_over = baton_make();
  for (int i = 0; i < count; ++i) {
    threads[i] = begin(of[i]);
    baton_wait(turn_done);
  }
  for (int i = 0; i < count; ++i) baton_pass(turns_over);
  for (int i = 0; i < count; ++i) end(threads[i]);
}
#define TAKE_TURNS(...)                              \
  do {                                               \
    const work works[] = {__VA_ARGS__};              \
    take_turns(works, sizeof works / sizeof *works); \
  } while (0)

static inline void take_both(pthread_mutex_t* first, pthread_mutex_t* second) {
  pthread_mutex_lock(first);
  pthread_mutex_lock(second);
  pthread_mutex_unlock(second);
  pthread_mutex_unlock(first);
}

// Makes a lock on which new readers wait behind a waiting writer. With glibc's PTHREAD_RWLOCK_PREFER_WRITER_NP, new
// readers do not wait.
static inline void prefer_writers(pthread_rwlock_t* lock) {
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(lock, &attributes);
}
