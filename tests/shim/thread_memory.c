/* thread_memory THREADS: prints how much memory THREADS threads need, in KiB, and nothing else. Each thread takes more
 * locks than the shim records, releases them, and sleeps. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kLocks = 100 };

static pthread_mutex_t g_locks[kLocks];
static pthread_mutex_t g_turn = PTHREAD_MUTEX_INITIALIZER;
static int g_ready[2];
static int g_stop[2];

static void* hold(void* unused) {
  char byte = 0;
  pthread_mutex_lock(&g_turn);
  for (int i = 0; i < kLocks; ++i) pthread_mutex_lock(&g_locks[i]);
  for (int i = kLocks - 1; i >= 0; --i) pthread_mutex_unlock(&g_locks[i]);
  pthread_mutex_unlock(&g_turn);
  if (write(g_ready[1], &byte, 1) != 1 || read(g_stop[0], &byte, 1) != 0) abort();
  return unused;
}

static long anonymous_kib(void) {
  char line[128];
  long kib = -1;
  FILE* const status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL) {
    if (strncmp(line, "RssAnon:", 8) == 0) kib = atol(line + 8);
  }
  if (status != NULL) fclose(status);
  return kib;
}

int main(int argc, char** argv) {
  const int count = argc == 2 ? atoi(argv[1]) : 0;
  pthread_t* const threads = calloc((size_t)count, sizeof *threads);
  pthread_attr_t attributes;
  char byte = 0;
  if (count < 10 || threads == NULL || pipe(g_ready) != 0 || pipe(g_stop) != 0) return 2;
  for (int i = 0; i < kLocks; ++i) pthread_mutex_init(&g_locks[i], NULL);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  const long before = anonymous_kib();
  for (int i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], &attributes, hold, NULL) != 0 || read(g_ready[0], &byte, 1) != 1) return 2;
  }
  printf("%ld\n", anonymous_kib() - before);
  close(g_stop[1]);
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  free(threads);
  return 0;
}
