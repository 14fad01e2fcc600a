// Threads contend for a spinlock that protects a sum. No addition may be lost. If a preloaded library defines
// pthread_spin_lock() itself, each call must reach this library.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

enum { kThreads = 4, kRounds = 20000 };

static pthread_spinlock_t g_lock;
static unsigned g_sum;  // protected by the lock

static void* add(void* unused) {
  (void)unused;
  for (int round = 0; round < kRounds; ++round) {
    if (pthread_spin_lock(&g_lock) != 0) return (void*)&g_sum;
    ++g_sum;
    if (pthread_spin_unlock(&g_lock) != 0) return (void*)&g_sum;
  }
  return NULL;
}

int main(int argc, char** argv) {
  (void)argv;
  pthread_t threads[kThreads];
  if (pthread_spin_init(&g_lock, PTHREAD_PROCESS_PRIVATE) != 0) return 2;
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, add, NULL) != 0) return 2;
  }
  int failed = 0;
  for (int i = 0; i < kThreads; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    failed += result != NULL;
  }
  const unsigned expected = (unsigned)kThreads * kRounds;
  unsigned (*calls)(void) = NULL;
  *(void**)&calls = dlsym(RTLD_DEFAULT, "spin_peer_calls");
  if ((calls != NULL) != (argc > 1)) return 3;  // with an argument, a library with its own functions must be loaded
  const unsigned seen = calls == NULL ? expected : calls();
  printf("%d failed, sum %u, %u calls seen\n", failed, g_sum, seen);
  return failed == 0 && g_sum == expected && seen == expected ? 0 : 1;
}
