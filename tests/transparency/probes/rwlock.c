/* Reader-writer locks. */
#include "probe.h"

static pthread_rwlock_t g_rwlock;

static void try_all(void) {
  const struct timespec past = long_ago();
  SHOW(pthread_rwlock_tryrdlock(&g_rwlock) == 0 && pthread_rwlock_unlock(&g_rwlock) == 0);
  SHOW(pthread_rwlock_trywrlock(&g_rwlock));
  SHOW(pthread_rwlock_timedwrlock(&g_rwlock, &past));
  SHOW(pthread_rwlock_clockwrlock(&g_rwlock, CLOCK_MONOTONIC, &past));
}

static void use(int kind) {
  const struct timespec past = long_ago();
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setkind_np(&attributes, kind);
  pthread_rwlock_init(&g_rwlock, &attributes);
  say(" kind %d", kind);
  SHOW(pthread_rwlock_rdlock(&g_rwlock));
  SHOW(pthread_rwlock_rdlock(&g_rwlock));
  SHOW(pthread_rwlock_tryrdlock(&g_rwlock));
  SHOW(pthread_rwlock_timedrdlock(&g_rwlock, &past));
  SHOW(pthread_rwlock_clockrdlock(&g_rwlock, CLOCK_MONOTONIC, &past));
  in_thread(try_all);
  for (int i = 0; i < 5; ++i) SHOW(pthread_rwlock_unlock(&g_rwlock));
  SHOW(pthread_rwlock_wrlock(&g_rwlock));
  SHOW(pthread_rwlock_wrlock(&g_rwlock));
  SHOW(pthread_rwlock_rdlock(&g_rwlock));
  SHOW(pthread_rwlock_tryrdlock(&g_rwlock));
  SHOW(pthread_rwlock_timedrdlock(&g_rwlock, &past));
  SHOW(pthread_rwlock_timedwrlock(&g_rwlock, &past));
  SHOW(pthread_rwlock_clockrdlock(&g_rwlock, CLOCK_MONOTONIC, &past));
  SHOW(pthread_rwlock_clockwrlock(&g_rwlock, CLOCK_MONOTONIC, &past));
  SHOW(pthread_rwlock_unlock(&g_rwlock));
  SHOW(pthread_rwlock_timedwrlock(&g_rwlock, &past));
  SHOW(pthread_rwlock_unlock(&g_rwlock));
  SHOW(pthread_rwlock_trywrlock(&g_rwlock));
  SHOW(pthread_rwlock_unlock(&g_rwlock));
  SHOW(pthread_rwlock_clockwrlock(&g_rwlock, CLOCK_MONOTONIC, &past));
  SHOW(pthread_rwlock_unlock(&g_rwlock));
  SHOW(pthread_rwlock_destroy(&g_rwlock));
}

PROBE(every_kind) {
  use(PTHREAD_RWLOCK_PREFER_READER_NP);
  use(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
}

static void wait_as_reader(void) {
  const struct timespec invalid = {1, -1};
  const struct timespec past = long_ago();
  struct timespec soon = in_ms(CLOCK_REALTIME, 20);
  SHOW(pthread_rwlock_timedrdlock(&g_rwlock, &invalid));
  SHOW(pthread_rwlock_clockrdlock(&g_rwlock, CLOCK_THREAD_CPUTIME_ID, &past));
  SHOW_TIMED(pthread_rwlock_timedrdlock(&g_rwlock, &soon), 19);
  soon = in_ms(CLOCK_MONOTONIC, 20);
  SHOW_TIMED(pthread_rwlock_clockrdlock(&g_rwlock, CLOCK_MONOTONIC, &soon), 19);
}
static void wait_as_writer(void) {
  const struct timespec invalid = {1, 1000000000};
  const struct timespec past = long_ago();
  struct timespec soon = in_ms(CLOCK_REALTIME, 20);
  SHOW(pthread_rwlock_timedwrlock(&g_rwlock, &invalid));
  SHOW(pthread_rwlock_clockwrlock(&g_rwlock, 12345, &past));
  SHOW_TIMED(pthread_rwlock_timedwrlock(&g_rwlock, &soon), 19);
  soon = in_ms(CLOCK_MONOTONIC, 20);
  SHOW_TIMED(pthread_rwlock_clockwrlock(&g_rwlock, CLOCK_MONOTONIC, &soon), 19);
}

PROBE(deadlines) {
  pthread_rwlock_init(&g_rwlock, NULL);
  pthread_rwlock_wrlock(&g_rwlock);
  in_thread(wait_as_reader);
  in_thread(wait_as_writer);
  pthread_rwlock_unlock(&g_rwlock);
  pthread_rwlock_rdlock(&g_rwlock);
  in_thread(wait_as_writer);
  SHOW(pthread_rwlock_unlock(&g_rwlock));
  SHOW(pthread_rwlock_trywrlock(&g_rwlock));
  SHOW(pthread_rwlock_unlock(&g_rwlock));
}

static const struct timespec kNever = {.tv_sec = 4000000000, .tv_nsec = 0};
static void hold_to_write(void) {
  pthread_rwlock_init(&g_rwlock, NULL);
  pthread_rwlock_wrlock(&g_rwlock);
}
static void hold_to_read(void) {
  pthread_rwlock_init(&g_rwlock, NULL);
  pthread_rwlock_rdlock(&g_rwlock);
}
static void give(void) { pthread_rwlock_unlock(&g_rwlock); }
static void show_state(void) {
  SHOW(pthread_rwlock_tryrdlock(&g_rwlock));
  SHOW(pthread_rwlock_trywrlock(&g_rwlock));
}
static int rdlock(void) { return pthread_rwlock_rdlock(&g_rwlock); }
static int wrlock(void) { return pthread_rwlock_wrlock(&g_rwlock); }
static int timedrdlock(void) { return pthread_rwlock_timedrdlock(&g_rwlock, &kNever); }
static int timedwrlock(void) { return pthread_rwlock_timedwrlock(&g_rwlock, &kNever); }
static int clockrdlock(void) { return pthread_rwlock_clockrdlock(&g_rwlock, CLOCK_MONOTONIC, &kNever); }
static int clockwrlock(void) { return pthread_rwlock_clockwrlock(&g_rwlock, CLOCK_MONOTONIC, &kNever); }

PROBE(blocking) {
  show_blocking(&(struct Blocking){"rdlock", hold_to_write, rdlock, give, show_state, NULL});
  show_blocking(&(struct Blocking){"wrlock, writer", hold_to_write, wrlock, give, show_state, NULL});
  show_blocking(&(struct Blocking){"wrlock, reader", hold_to_read, wrlock, give, show_state, NULL});
  show_blocking(&(struct Blocking){"timedrdlock", hold_to_write, timedrdlock, give, show_state, NULL});
  show_blocking(&(struct Blocking){"timedwrlock", hold_to_write, timedwrlock, give, show_state, NULL});
  show_blocking(&(struct Blocking){"clockrdlock", hold_to_write, clockrdlock, give, show_state, NULL});
  show_blocking(&(struct Blocking){"clockwrlock", hold_to_read, clockwrlock, give, show_state, NULL});
}

static void use_as_reader(void) {
  SHOW(pthread_rwlock_trywrlock(&g_rwlock));
  SHOW(pthread_rwlock_tryrdlock(&g_rwlock));
  SHOW(pthread_rwlock_unlock(&g_rwlock));
  SHOW(pthread_rwlock_unlock(&g_rwlock));
  SHOW(pthread_rwlock_trywrlock(&g_rwlock));
}
PROBE(reader_forks) {
  hold_to_read();
  in_child(use_as_reader);
  SHOW(pthread_rwlock_unlock(&g_rwlock));
}
static void use_as_writer(void) {
  SHOW(pthread_rwlock_tryrdlock(&g_rwlock));
  SHOW(pthread_rwlock_trywrlock(&g_rwlock));
}
PROBE(writer_forks) {
  hold_to_write();
  in_child(use_as_writer);
  SHOW(pthread_rwlock_unlock(&g_rwlock));
}
