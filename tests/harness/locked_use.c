// A library with one lock, which is held nearly all the time that somebody is in it. -DHANDLED: with handlers that take
// it around the fork.
#include <forksight/fork_test.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#ifdef HANDLED
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void take(void) { pthread_mutex_lock(&mutex); }
static void give(void) { pthread_mutex_unlock(&mutex); }
static void prepare(void) { pthread_atfork(take, give, give); }
#endif

static int use(void) {
  volatile int work = 0;
#ifdef HANDLED
  pthread_once(&once, prepare);
#endif
  pthread_mutex_lock(&mutex);
  while (work < 200000) ++work;
  pthread_mutex_unlock(&mutex);
  return 0;
}

FORKSIGHT_FORK_TEST(use)
