/* 8 threads fork 1,000 times together. Between the forks they lock, allocate, print to files, open and close libraries,
 * and create and join threads. Without the shim this program does not hang or fail, so it must not do so with the shim.
 * It ends with status 0, or prints what failed and ends with status 1. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 8, kForks = 1000 };

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int g_forks;
static atomic_int g_failures;

static void* return_at_once(void* argument) { return argument; }

static void fail(const char* what) {
  perror(what);
  atomic_fetch_add(&g_failures, 1);
}

static void be_busy(void) {
  pthread_t thread;
  pthread_mutex_lock(&g_mutex);
  pthread_mutex_unlock(&g_mutex);
  free(malloc(100));
  FILE* file = fopen("/dev/null", "w");
  if (file == NULL || fputs("busy", file) < 0 || fclose(file) != 0) fail("file");
  printf("busy\n");
  void* library = dlopen("libm.so.6", RTLD_NOW);
  if (library == NULL || dlclose(library) != 0) fail("dlopen");
  if (pthread_create(&thread, NULL, return_at_once, NULL) != 0 || pthread_join(thread, NULL) != 0)
    fail("pthread_create");
}

static void fork_once(void) {
  const struct timespec past = {1, 0};
  const pid_t child = fork();
  if (child == 0) {
    free(malloc(10));
    printf("child\n");
    pthread_mutex_timedlock(&g_mutex, &past); /* the mutex may be an orphan */
    _exit(0);
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) fail("child");
}

static void* work(void* unused) {
  while (atomic_fetch_add(&g_forks, 1) < kForks) {
    be_busy();
    fork_once();
  }
  return unused;
}

int main(void) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, work, NULL) != 0) return 1;
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return atomic_load(&g_failures) == 0 ? 0 : 1;
}
