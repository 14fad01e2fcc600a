/* Condition variables. */
#include "probe.h"

static pthread_mutex_t g_mutex;
static pthread_cond_t g_condition;
static const struct timespec kNever = {.tv_sec = 4000000000, .tv_nsec = 0};

static void make(int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  pthread_mutex_init(&g_mutex, &attributes);
  pthread_cond_init(&g_condition, NULL);
}

PROBE(deadlines) {
  const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
  const struct timespec past = long_ago();
  const struct timespec invalid = {1, 1000000000};
  struct timespec soon;
  for (int i = 0; i < 3; ++i) {
    say(" type %d", types[i]);
    make(types[i]);
    if (types[i] == PTHREAD_MUTEX_ERRORCHECK) SHOW(pthread_cond_timedwait(&g_condition, &g_mutex, &past));
    pthread_mutex_lock(&g_mutex);
    SHOW(pthread_cond_timedwait(&g_condition, &g_mutex, &past));
    SHOW(pthread_cond_timedwait(&g_condition, &g_mutex, &invalid));
    SHOW(pthread_cond_clockwait(&g_condition, &g_mutex, CLOCK_MONOTONIC, &past));
    SHOW(pthread_cond_clockwait(&g_condition, &g_mutex, CLOCK_MONOTONIC, &invalid));
    SHOW(pthread_cond_clockwait(&g_condition, &g_mutex, CLOCK_THREAD_CPUTIME_ID, &past));
    soon = in_ms(CLOCK_REALTIME, 20);
    SHOW_TIMED(pthread_cond_timedwait(&g_condition, &g_mutex, &soon), 19);
    soon = in_ms(CLOCK_MONOTONIC, 20);
    SHOW_TIMED(pthread_cond_clockwait(&g_condition, &g_mutex, CLOCK_MONOTONIC, &soon), 19);
    SHOW(pthread_mutex_trylock(&g_mutex) == (types[i] == PTHREAD_MUTEX_RECURSIVE ? 0 : EBUSY));
    SHOW(pthread_mutex_unlock(&g_mutex));
    if (types[i] == PTHREAD_MUTEX_RECURSIVE) SHOW(pthread_mutex_unlock(&g_mutex));
    SHOW(pthread_cond_destroy(&g_condition));
    SHOW(pthread_mutex_destroy(&g_mutex));
  }
}

PROBE(clock_of_the_condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  make(PTHREAD_MUTEX_NORMAL);
  pthread_cond_init(&g_condition, &attributes);
  pthread_mutex_lock(&g_mutex);
  struct timespec soon = in_ms(CLOCK_MONOTONIC, 20);
  SHOW_TIMED(pthread_cond_timedwait(&g_condition, &g_mutex, &soon), 19);
  SHOW(pthread_mutex_unlock(&g_mutex));
}

/* The waiting thread holds the mutex before and after the wait, and in its cleanup handler. */
static int g_woken;
static void prepare(void) {
  make(PTHREAD_MUTEX_ERRORCHECK);
  g_woken = 0;
}
static void wake(void) {
  pthread_mutex_lock(&g_mutex);
  g_woken = 1;
  pthread_cond_signal(&g_condition);
  pthread_mutex_unlock(&g_mutex);
}
static void unlock(void) { SHOW(pthread_mutex_unlock(&g_mutex)); }
static void show_state(void) {
  SHOW(pthread_mutex_trylock(&g_mutex));
  SHOW(pthread_mutex_unlock(&g_mutex));
}
static int wait_(void) {
  int result = pthread_mutex_lock(&g_mutex);
  while (!g_woken && result == 0) result = pthread_cond_wait(&g_condition, &g_mutex);
  pthread_mutex_unlock(&g_mutex);
  return result;
}
static int timedwait(void) {
  int result = pthread_mutex_lock(&g_mutex);
  while (!g_woken && result == 0) result = pthread_cond_timedwait(&g_condition, &g_mutex, &kNever);
  pthread_mutex_unlock(&g_mutex);
  return result;
}
static int clockwait(void) {
  int result = pthread_mutex_lock(&g_mutex);
  while (!g_woken && result == 0) result = pthread_cond_clockwait(&g_condition, &g_mutex, CLOCK_MONOTONIC, &kNever);
  pthread_mutex_unlock(&g_mutex);
  return result;
}

PROBE(blocking) {
  show_blocking(&(struct Blocking){"wait", prepare, wait_, wake, show_state, unlock});
  show_blocking(&(struct Blocking){"timedwait", prepare, timedwait, wake, show_state, unlock});
  show_blocking(&(struct Blocking){"clockwait", prepare, clockwait, wake, show_state, unlock});
}

/* The thread holds two mutexes. The wait releases only one of them. */
static pthread_mutex_t g_kept = PTHREAD_MUTEX_INITIALIZER;
static void try_both(void) {
  SHOW(pthread_mutex_trylock(&g_kept));
  SHOW(pthread_mutex_trylock(&g_mutex));
}
PROBE(keeps_the_others) {
  const struct timespec past = long_ago();
  make(PTHREAD_MUTEX_NORMAL);
  pthread_mutex_lock(&g_mutex);
  pthread_mutex_lock(&g_kept);
  SHOW(pthread_cond_timedwait(&g_condition, &g_mutex, &past));
  in_thread(try_both);
  SHOW(pthread_mutex_unlock(&g_mutex));
  SHOW(pthread_mutex_unlock(&g_kept));
}

/* A thread waits during two forks. One child signals, initialises the variable again and destroys it. The other child
 * broadcasts once. */
static void* wait_for_ever(void* unused) {
  pthread_mutex_lock(&g_mutex);
  g_woken = 1;
  while (g_woken != 2) pthread_cond_wait(&g_condition, &g_mutex);
  pthread_mutex_unlock(&g_mutex);
  return unused;
}
static void use_in_child(void) {
  const struct timespec past = long_ago();
  SHOW(pthread_cond_signal(&g_condition));
  pthread_mutex_lock(&g_mutex);
  SHOW(pthread_cond_timedwait(&g_condition, &g_mutex, &past));
  pthread_mutex_unlock(&g_mutex);
  SHOW(pthread_cond_init(&g_condition, NULL));
  SHOW(pthread_cond_broadcast(&g_condition));
  pthread_mutex_lock(&g_mutex);
  SHOW(pthread_cond_timedwait(&g_condition, &g_mutex, &past));
  pthread_mutex_unlock(&g_mutex);
  SHOW(pthread_cond_destroy(&g_condition));
}
static void broadcast_in_child(void) { SHOW(pthread_cond_broadcast(&g_condition)); }
PROBE_IN(waiters_of_the_parent, IN_MAIN | IN_MAIN_OF_MANY | IN_CHILD | IN_WATCHED_CHILD | AT_EXIT) {
  pthread_t thread;
  make(PTHREAD_MUTEX_NORMAL);
  g_woken = 0;
  if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0) return;
  for (int is_inside = 0; !is_inside;) {
    pthread_mutex_lock(&g_mutex);
    is_inside = g_woken;
    pthread_mutex_unlock(&g_mutex);
  }
  in_child(use_in_child);
  in_child(broadcast_in_child);
  pthread_mutex_lock(&g_mutex);
  g_woken = 2;
  SHOW(pthread_cond_broadcast(&g_condition));
  pthread_mutex_unlock(&g_mutex);
  pthread_join(thread, NULL);
  SHOW(pthread_cond_destroy(&g_condition));
}

PROBE(nobody_waits) {
  make(PTHREAD_MUTEX_NORMAL);
  SHOW(pthread_cond_signal(&g_condition));
  SHOW(pthread_cond_broadcast(&g_condition));
  SHOW(pthread_cond_destroy(&g_condition));
}
