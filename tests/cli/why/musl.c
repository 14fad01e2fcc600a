// A child waits for a mutex that another thread of its parent holds. musl-gcc builds this program, so musl's loader
// starts the program.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static int held[2];

static void* hold(void* unused) {
  pthread_mutex_lock(&queue_mutex);
  if (write(held[1], "x", 1) != 1) _exit(3);
  for (;;) pause();
  return unused;
}

int main(void) {
  pthread_t holder;
  char byte;
  if (pipe(held) != 0 || pthread_create(&holder, NULL, hold, NULL) != 0 || read(held[0], &byte, 1) != 1) return 3;
  const pid_t child = fork();
  if (child == 0) {
    pthread_mutex_lock(&queue_mutex);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  return 0;
}
