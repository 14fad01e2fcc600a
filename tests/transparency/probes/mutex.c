/* Mutexes of every kind. */
#include "probe.h"

#include <sys/mman.h>

enum { kNormal, kRecursive, kErrorcheck, kAdaptive, kRobust, kInherit, kShared, kRobustRecursive, kKinds };
static const char* const kNames[] = {"normal", "recursive", "errorcheck",     "adaptive",
                                     "robust", "inherit",   "process-shared", "robust recursive"};

static pthread_mutex_t g_mutex;

static void make_mutex(pthread_mutex_t* mutex, int kind) {
  const int types[kKinds] = {PTHREAD_MUTEX_NORMAL,      PTHREAD_MUTEX_RECURSIVE,  PTHREAD_MUTEX_ERRORCHECK,
                             PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ERRORCHECK,
                             PTHREAD_MUTEX_ERRORCHECK,  PTHREAD_MUTEX_RECURSIVE};
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, types[kind]);
  if (kind == kRobust || kind == kRobustRecursive) {
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  }
  if (kind == kInherit) pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  if (kind == kShared) pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

static int is_recursive(int kind) { return kind == kRecursive || kind == kRobustRecursive; }
/* Returns true if the owner waits for ever when it locks the mutex a second time. */
static int waits_for_itself(int kind) { return kind == kNormal || kind == kAdaptive; }

static pthread_mutex_t* g_other;
static void try_from_another(void) {
  const struct timespec past = long_ago();
  SHOW(pthread_mutex_trylock(g_other));
  SHOW(pthread_mutex_timedlock(g_other, &past));
  SHOW(pthread_mutex_clocklock(g_other, CLOCK_MONOTONIC, &past));
}
static void unlock_from_another(void) { SHOW(pthread_mutex_unlock(g_other)); }

PROBE(every_kind) {
  for (int kind = 0; kind < kKinds; ++kind) {
    pthread_mutex_t mutex;
    say(" %s", kNames[kind]);
    make_mutex(&mutex, kind);
    g_other = &mutex;
    SHOW(pthread_mutex_lock(&mutex));
    SHOW(pthread_mutex_trylock(&mutex));
    if (is_recursive(kind)) SHOW(pthread_mutex_unlock(&mutex));
    if (!waits_for_itself(kind)) SHOW(pthread_mutex_lock(&mutex));
    if (is_recursive(kind)) SHOW(pthread_mutex_unlock(&mutex));
    in_thread(try_from_another);
    if (!waits_for_itself(kind)) in_thread(unlock_from_another);
    SHOW(pthread_mutex_destroy(&mutex));
    SHOW(pthread_mutex_unlock(&mutex));
    if (!waits_for_itself(kind)) SHOW(pthread_mutex_unlock(&mutex));
    SHOW(pthread_mutex_trylock(&mutex));
    SHOW(pthread_mutex_unlock(&mutex));
    SHOW(pthread_mutex_destroy(&mutex));
  }
}

PROBE(deadlines) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const struct timespec past = long_ago();
  const struct timespec invalid = {1, 1000000000};
  const struct timespec negative = {-1, 0};
  struct timespec soon;
  /* The mutex is free, so the deadline does not matter. */
  SHOW(pthread_mutex_timedlock(&mutex, &past));
  SHOW(pthread_mutex_timedlock(&mutex, &past));
  SHOW(pthread_mutex_timedlock(&mutex, &invalid));
  SHOW(pthread_mutex_timedlock(&mutex, &negative));
  SHOW(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &past));
  SHOW(pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, &past));
  SHOW(pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &past));
  SHOW(pthread_mutex_clocklock(&mutex, 12345, &past));
  soon = in_ms(CLOCK_REALTIME, 20);
  SHOW_TIMED(pthread_mutex_timedlock(&mutex, &soon), 19);
  soon = in_ms(CLOCK_MONOTONIC, 20);
  SHOW_TIMED(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon), 19);
  SHOW(pthread_mutex_unlock(&mutex));
  SHOW(pthread_mutex_timedlock(&mutex, &invalid));
  SHOW(pthread_mutex_unlock(&mutex));
  SHOW(pthread_mutex_clocklock(&mutex, 12345, &past));
}

/* Blocking calls. The calls with a deadline use a deadline in the far future. */
static struct timespec g_never;
static void hold(void) {
  make_mutex(&g_mutex, kNormal);
  pthread_mutex_lock(&g_mutex);
  g_never = (struct timespec){.tv_sec = 4000000000, .tv_nsec = 0};
}
static void give(void) { pthread_mutex_unlock(&g_mutex); }
static void show_state(void) { SHOW(pthread_mutex_trylock(&g_mutex)); }
static int lock(void) { return pthread_mutex_lock(&g_mutex); }
static int timedlock(void) { return pthread_mutex_timedlock(&g_mutex, &g_never); }
static int clocklock(void) { return pthread_mutex_clocklock(&g_mutex, CLOCK_MONOTONIC, &g_never); }

PROBE(blocking) {
  show_blocking(&(struct Blocking){"lock", hold, lock, give, show_state, NULL});
  show_blocking(&(struct Blocking){"timedlock", hold, timedlock, give, show_state, NULL});
  show_blocking(&(struct Blocking){"clocklock", hold, clocklock, give, show_state, NULL});
}

static pthread_mutex_t g_robust;
static void lock_and_end(void) { pthread_mutex_lock(&g_robust); }

PROBE(owner_dies) {
  const int kinds[] = {kRobust, kRobustRecursive};
  for (int i = 0; i < 2; ++i) {
    make_mutex(&g_robust, kinds[i]);
    in_thread(lock_and_end);
    SHOW(pthread_mutex_lock(&g_robust));
    SHOW(pthread_mutex_consistent(&g_robust));
    SHOW(pthread_mutex_unlock(&g_robust));
    in_thread(lock_and_end);
    SHOW(pthread_mutex_trylock(&g_robust));
    SHOW(pthread_mutex_unlock(&g_robust));
    SHOW(pthread_mutex_lock(&g_robust)); /* ENOTRECOVERABLE from now on; glibc 2.36 cannot unlock it */
    SHOW(pthread_mutex_trylock(&g_robust));
  }
}

static pthread_mutex_t* g_shared;
static void lock_in_child(void) {
  SHOW(pthread_mutex_trylock(g_shared));
  SHOW(pthread_mutex_unlock(g_shared));
}
static void die_with_lock(void) { SHOW(pthread_mutex_lock(g_shared)); }

PROBE(in_shared_memory) {
  pthread_mutexattr_t attributes;
  g_shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(g_shared, &attributes);
  SHOW(pthread_mutex_lock(g_shared));
  in_child(lock_in_child);
  SHOW(pthread_mutex_unlock(g_shared));
  in_child(lock_in_child);
  in_child(die_with_lock);
  SHOW(pthread_mutex_lock(g_shared));
  SHOW(pthread_mutex_consistent(g_shared));
  SHOW(pthread_mutex_unlock(g_shared));
  munmap(g_shared, 4096);
}

/* More mutexes than the shim records for a thread, released in the order in which they were taken. */
PROBE(many_at_once) {
  enum { kMany = 300 };
  static pthread_mutex_t many[kMany];
  int failed = 0;
  for (int i = 0; i < kMany; ++i) {
    pthread_mutex_init(&many[i], NULL);
    failed += pthread_mutex_lock(&many[i]) != 0;
  }
  for (int i = 0; i < kMany; ++i) failed += pthread_mutex_trylock(&many[i]) != EBUSY;
  for (int i = 0; i < kMany; ++i) failed += pthread_mutex_unlock(&many[i]) != 0;
  for (int i = 0; i < kMany; ++i) failed += pthread_mutex_trylock(&many[i]) != 0;
  for (int i = kMany - 1; i >= 0; --i) failed += pthread_mutex_unlock(&many[i]) != 0;
  say("failed %d", failed);
}

/* The thread that holds the mutex forks. Its copy in the child uses the mutex. */
static void use_after_fork(void) {
  SHOW(pthread_mutex_trylock(&g_mutex));
  SHOW(pthread_mutex_unlock(&g_mutex));
  SHOW(pthread_mutex_trylock(&g_mutex));
}
PROBE(held_over_fork) {
  const int kinds[] = {kNormal, kRecursive, kErrorcheck, kAdaptive, kRobust};
  for (int i = 0; i < 5; ++i) {
    make_mutex(&g_mutex, kinds[i]);
    SHOW(pthread_mutex_lock(&g_mutex));
    in_child(use_after_fork);
    SHOW(pthread_mutex_unlock(&g_mutex));
  }
}
