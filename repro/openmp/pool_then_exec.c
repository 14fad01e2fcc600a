// Mechanism: none. The forking thread has a pool of libgomp, and another thread holds a mutex. The child execs a
//            program that runs a parallel region of its own.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <omp.h>
#include <pthread.h>
#include <string.h>

#include "../baton.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct baton mutex_is_held;

__attribute__((noinline)) static int count_threads(void) {
  int threads = 0;
#pragma omp parallel num_threads(2)
  {
#pragma omp atomic
    ++threads;
  }
  return threads;
}

static void* holder_main(void* unused) {
  pthread_mutex_lock(&mutex);
  baton_pass(mutex_is_held);
  park();
  return unused;
}

int main(int argc, char** argv) {
  const int threads = count_threads();
  if (argc == 2 && strcmp(argv[1], "again") == 0) return threads == 2 ? 0 : 1;
  pthread_t holder;
  mutex_is_held = baton_make();
  pthread_create(&holder, NULL, holder_main, NULL);
  baton_wait(mutex_is_held);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", argv[0], "again", (char*)NULL);
    _exit(127);
  }
  return threads == 2 ? end_of(child) : 1;
}
