// A library with one lock. A thread that uses the library holds the lock for nearly the whole call. With -DHANDLED,
// atfork handlers take the lock before a fork, and release it after the fork.
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
