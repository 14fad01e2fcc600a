/* Makes the shim write to its trace without pause, until the program is killed. Two threads lock and unlock a mutex. A
 * third thread holds another mutex for ever. The main thread forks. Each child tries to lock the held mutex. The kernel
 * kills a child when the parent ends. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t g_busy = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t g_held = PTHREAD_MUTEX_INITIALIZER;
static int g_ready[2];

static void* lock_and_unlock(void* unused) {
  for (;;) {
    pthread_mutex_lock(&g_busy);
    pthread_mutex_unlock(&g_busy);
  }
  return unused;
}

static void* hold(void* unused) {
  pthread_mutex_lock(&g_held);
  if (write(g_ready[1], "x", 1) != 1) abort();
  for (;;) pause();
  return unused;
}

int main(void) {
  const struct timespec past = {1, 0};
  const pid_t self = getpid();
  pthread_t thread;
  char byte;
  if (pipe(g_ready) != 0) return 1;
  pthread_create(&thread, NULL, hold, NULL);
  for (int i = 0; i < 2; ++i) pthread_create(&thread, NULL, lock_and_unlock, NULL);
  if (read(g_ready[0], &byte, 1) != 1) return 1;
  for (;;) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != self) _exit(1);
      for (int i = 0; i < 20; ++i) pthread_mutex_timedlock(&g_held, &past);
      _exit(0);
    }
    if (child > 0) waitpid(child, NULL, 0);
  }
}
