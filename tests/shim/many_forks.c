/* many_forks FORKS THREADS LOCKS: forks FORKS times while THREADS threads sleep. Each of these threads holds LOCKS
 * locks. No child uses the locks. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMaxLocks = 16 };

static int g_locks;
static int g_ready[2];
static int g_stop[2];

static void* hold(void* unused) {
  pthread_mutex_t locks[kMaxLocks];
  char byte = 0;
  for (int i = 0; i < g_locks; ++i) {
    pthread_mutex_init(&locks[i], NULL);
    pthread_mutex_lock(&locks[i]);
  }
  if (write(g_ready[1], &byte, 1) != 1 || read(g_stop[0], &byte, 1) != 0) abort();
  for (int i = 0; i < g_locks; ++i) pthread_mutex_unlock(&locks[i]);
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int forks = atoi(argv[1]);
  const int count = atoi(argv[2]);
  g_locks = atoi(argv[3]);
  pthread_t* const threads = calloc((size_t)count, sizeof *threads);
  char byte = 0;
  if (threads == NULL || g_locks > kMaxLocks || pipe(g_ready) != 0 || pipe(g_stop) != 0) return 2;
  for (int i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], NULL, hold, NULL) != 0 || read(g_ready[0], &byte, 1) != 1) return 2;
  }
  for (int i = 0; i < forks; ++i) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
      perror("fork");
      return 1;
    }
  }
  close(g_stop[1]);
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  free(threads);
  return 0;
}
