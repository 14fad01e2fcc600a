// Mechanism: none. The forking thread holds a normal mutex across the fork. Parent and child each unlock their own
//            copy, and lock it again. A normal mutex does not check which thread unlocks it.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <pthread.h>

#include "../baton.h"

static pthread_mutex_t state_mutex = PTHREAD_MUTEX_INITIALIZER;
static int generation = 0;
static struct baton helper_runs;

static void* helper_main(void* unused) {
  baton_pass(helper_runs);
  park();
  return unused;
}

int main(void) {
  pthread_t helper;
  helper_runs = baton_make();
  pthread_create(&helper, NULL, helper_main, NULL);
  baton_wait(helper_runs);
  pthread_mutex_lock(&state_mutex);
  const pid_t child = fork();
  ++generation;
  pthread_mutex_unlock(&state_mutex);
  pthread_mutex_lock(&state_mutex);
  const int seen = generation;
  pthread_mutex_unlock(&state_mutex);
  if (child == 0) _exit(seen == 1 ? 0 : 1);
  return end_of(child);
}
