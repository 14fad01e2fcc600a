/* Threads use several kinds of locks. The process forks while the threads exist, and the child allocates memory. Both
 * processes print their counts. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 4, kRounds = 50 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t all_counted = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t start;
static sem_t places;
static int finished, counted, leave_pipe[2];

static void* work(void* unused) {
  char byte;
  (void)unused;
  pthread_barrier_wait(&start);
  for (int i = 0; i < kRounds; ++i) {
    while (sem_wait(&places) != 0) {
    }
    pthread_rwlock_rdlock(&rwlock);
    pthread_mutex_lock(&mutex);
    ++counted;
    pthread_mutex_unlock(&mutex);
    pthread_rwlock_unlock(&rwlock);
    sem_post(&places);
  }
  pthread_mutex_lock(&mutex);
  ++finished;
  pthread_cond_broadcast(&all_counted);
  pthread_mutex_unlock(&mutex);
  return read(leave_pipe[0], &byte, 1) == 1 ? &counted : NULL;
}

static int child(void) {
  size_t bytes = 0;
  for (size_t size = 1; size < 1 << 16; size *= 3) {
    char* const text = malloc(size);
    memset(text, 'x', size);
    bytes += strnlen(text, size);
    free(text);
  }
  pthread_mutex_lock(&mutex);
  printf("child: %zu bytes, %d counted\n", bytes, counted);
  pthread_mutex_unlock(&mutex);
  fflush(stdout);
  return 3;
}

int main(void) {
  pthread_t threads[kThreads];
  int status = 0;
  if (pipe(leave_pipe) != 0 || sem_init(&places, 0, 2) != 0) return 1;
  pthread_barrier_init(&start, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, work, NULL) != 0) return 1;
  }
  pthread_mutex_lock(&mutex);
  while (finished < kThreads) pthread_cond_wait(&all_counted, &mutex);
  pthread_mutex_unlock(&mutex);
  const pid_t pid = fork();
  if (pid == 0) _exit(child());
  if (waitpid(pid, &status, 0) != pid || write(leave_pipe[1], "xxxx", kThreads) != kThreads) return 1;
  int joined = 0;
  for (int i = 0; i < kThreads; ++i) {
    void* result = NULL;
    joined += pthread_join(threads[i], &result) == 0 && result == &counted;
  }
  printf("parent: child ended with %d, %d joined\n", WEXITSTATUS(status), joined);
  return 5;
}
