// Threads take locks. The process forks while it has threads. The children touch no lock. The program has no defect.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 4, kRounds = 200, kForks = 8 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int count, finished;

__attribute__((noinline)) int add_one(int value) {
  return value + 1;
}

static void *worker(void *unused) {
  for (int round = 0; round < kRounds; ++round) {
    pthread_mutex_lock(&lock);
    count = add_one(count);
    pthread_mutex_unlock(&lock);
  }
  pthread_mutex_lock(&lock);
  ++finished;
  pthread_cond_broadcast(&changed);
  while (finished != -1)
    pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  return unused;
}

__attribute__((noinline)) void child_main(int number) {
  _exit(number);
}

int main(void) {
  pthread_t threads[kThreads];
  for (int index = 0; index < kThreads; ++index)
    pthread_create(&threads[index], NULL, worker, NULL);
  pthread_mutex_lock(&lock);
  while (finished != kThreads)
    pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  for (int number = 1; number <= kForks; ++number) {
    pid_t child = fork();
    if (child == 0)
      child_main(number);
    int status;
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != number)
      return 2;
  }
  pthread_mutex_lock(&lock);
  finished = -1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  for (int index = 0; index < kThreads; ++index)
    pthread_join(threads[index], NULL);
  printf("child: well %d\n", count);
  return count == kThreads * kRounds ? 0 : 1;
}
