// Mechanism: none. A thread is inside of pthread_once() when main forks. libc counts the generations of forks, and
//            stores the number in the control variable. The number shows the child that a thread of its parent began
//            the initialisation. So the child runs the initialisation again.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <pthread.h>

#include "../baton.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct baton begins;
static int runs;

static void initialise(void) {
  if (++runs == 1) {
    baton_pass(begins);
    park();
  }
}

static void* worker_main(void* unused) {
  pthread_once(&once, initialise);
  return unused;
}

int main(void) {
  pthread_t worker;
  begins = baton_make();
  pthread_create(&worker, NULL, worker_main, NULL);
  baton_wait(begins);
  const pid_t child = fork();
  if (child == 0) {
    pthread_once(&once, initialise);
    _exit(runs == 2 ? 0 : 1);
  }
  return end_of(child);
}
