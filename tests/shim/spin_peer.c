// A library that is preloaded after the shim. It defines pthread_spin_lock() itself, and counts the calls.
#include <pthread.h>
#include <stdatomic.h>

static atomic_uint g_calls;

unsigned spin_peer_calls(void) { return atomic_load(&g_calls); }

int pthread_spin_lock(pthread_spinlock_t* lock) {
  atomic_fetch_add(&g_calls, 1);
  while (pthread_spin_trylock(lock) != 0) __builtin_ia32_pause();
  return 0;
}
