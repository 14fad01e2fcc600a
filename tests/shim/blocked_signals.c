// Forks three times while another thread exists: by fork() with no signal blocked, by fork() with SIGTERM blocked, and
// by _Fork() with SIGTERM blocked.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void* wait_for_end(void* fd) {
  char byte;
  if (read(*(int*)fd, &byte, 1) != 0) abort();
  return NULL;
}

static void fork_by(pid_t (*make)(void)) {
  const pid_t child = make();
  if (child == 0) _exit(0);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) abort();
}

int main(void) {
  int ends[2];
  pthread_t thread;
  sigset_t set;
  if (pipe(ends) != 0 || pthread_create(&thread, NULL, wait_for_end, &ends[0]) != 0) abort();
  fork_by(fork);
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  fork_by(fork);
  fork_by(_Fork);
  close(ends[1]);
  return pthread_join(thread, NULL);
}
