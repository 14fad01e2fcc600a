// Mechanism: the routine of pthread_once() calls a function that calls pthread_once() with the same control variable.
//            -DOTHER:   another thread runs the routine, which waits for a mutex. Main holds that mutex and waits for
//                       the routine.
// To blame:  the inner call. It waits for the end of the routine that makes the call.
// User sees: the first use of a library never returns.
// Fix:       in the routine, call a function that does not call pthread_once() with this variable.
// Repaired:  the routine calls such a function.
//
// EXPECT-BARE: hang
// EXPECT: self-deadlock proven/likely hang victims=0
// EXPECT(other): deadlock proven/unknown hang victims=0
#include <pthread.h>

#include "../baton.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int table;

#ifdef OTHER
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct baton inside;

static void make_table(void) {
  baton_pass(inside);
  pthread_mutex_lock(&table_lock);
  table = 1;
  pthread_mutex_unlock(&table_lock);
}

static void* maker_main(void* unused) {
  pthread_once(&once, make_table);
  return unused;
}

int main(void) {
  pthread_t maker;
  inside = baton_make();
  pthread_mutex_lock(&table_lock);
  pthread_create(&maker, NULL, maker_main, NULL);
  baton_wait(inside);
  pthread_once(&once, make_table);
  pthread_mutex_unlock(&table_lock);
  pthread_join(maker, NULL);
  return table == 1 ? 0 : 1;
}
#else
static void make_table(void);

static int look_up(void) {
#ifndef REPAIRED
  pthread_once(&once, make_table);
#endif
  return table;
}

static void make_table(void) { table = look_up() + 1; }

int main(void) {
  pthread_once(&once, make_table);
  return look_up() == 1 ? 0 : 1;
}
#endif
