/* C11's threads, mutexes and condition variables. */
#include "probe.h"

#include <threads.h>

static mtx_t g_mutex;
static cnd_t g_condition;
static int g_woken;

PROBE(mutexes) {
  const int types[] = {mtx_plain, mtx_timed, mtx_timed | mtx_recursive};
  const struct timespec past = long_ago();
  for (int i = 0; i < 3; ++i) {
    say(" type %d", types[i]);
    SHOW(mtx_init(&g_mutex, types[i]));
    SHOW(mtx_lock(&g_mutex));
    SHOW(mtx_trylock(&g_mutex));
    if (types[i] & mtx_recursive) {
      SHOW(mtx_unlock(&g_mutex));
    } else {
      SHOW(mtx_timedlock(&g_mutex, &past));
      const struct timespec soon = in_ms(CLOCK_REALTIME, 20);
      SHOW_TIMED(mtx_timedlock(&g_mutex, &soon), 19);
    }
    SHOW(mtx_unlock(&g_mutex));
    if (types[i] & mtx_recursive) SHOW(mtx_unlock(&g_mutex));
    mtx_destroy(&g_mutex);
  }
}

PROBE(conditions) {
  const struct timespec past = long_ago();
  mtx_init(&g_mutex, mtx_plain);
  SHOW(cnd_init(&g_condition));
  mtx_lock(&g_mutex);
  SHOW(cnd_timedwait(&g_condition, &g_mutex, &past));
  SHOW(mtx_trylock(&g_mutex));
  mtx_unlock(&g_mutex);
  SHOW(cnd_signal(&g_condition));
  SHOW(cnd_broadcast(&g_condition));
  cnd_destroy(&g_condition);
}

static void prepare(void) {
  mtx_init(&g_mutex, mtx_plain);
  cnd_init(&g_condition);
  g_woken = 0;
}
static int wait_(void) {
  int result = mtx_lock(&g_mutex);
  while (!g_woken && result == thrd_success) result = cnd_wait(&g_condition, &g_mutex);
  mtx_unlock(&g_mutex);
  return result;
}
static void wake(void) {
  mtx_lock(&g_mutex);
  g_woken = 1;
  cnd_signal(&g_condition);
  mtx_unlock(&g_mutex);
}
static void show_state(void) {
  SHOW(mtx_trylock(&g_mutex));
  SHOW(mtx_unlock(&g_mutex));
}
static void unlock(void) { SHOW(mtx_unlock(&g_mutex)); }
PROBE(blocking) { show_blocking(&(struct Blocking){"cnd_wait", prepare, wait_, wake, show_state, unlock}); }

static int give_back(void* value) { return *(const int*)value; }
static int leave(void* value) { thrd_exit(*(const int*)value); }
PROBE(threads) {
  int values[] = {0, 7, -3};
  for (int i = 0; i < 3; ++i) {
    thrd_t thread;
    int result = 99;
    SHOW(thrd_create(&thread, give_back, &values[i]));
    SHOW(thrd_join(thread, &result));
    say("  returned %d", result);
    SHOW(thrd_create(&thread, leave, &values[i]));
    SHOW(thrd_join(thread, &result));
    say("  left with %d", result);
    SHOW(thrd_create(&thread, give_back, &values[i]));
    SHOW(thrd_join(thread, NULL));
  }
}
