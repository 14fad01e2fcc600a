// why_tree PROCESSES THREADS: creates PROCESSES processes with THREADS threads each. All of them hang. In the first
// process, one thread holds a mutex for ever, the main thread waits for its children, and the other threads wait for
// the mutex. The other processes are these children. They have inherited the locked mutex, and all their threads wait
// for it. The first process writes a byte to standard output when all threads are about to wait.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int here[2];

static void say_here(void) {
  if (write(here[1], "x", 1) != 1) _exit(3);
}

static void* hold(void* nothing) {
  pthread_mutex_lock(&mutex);
  say_here();
  for (;;) pause();
  return nothing;
}

__attribute__((noinline)) static void take(void) { pthread_mutex_lock(&mutex); }

static void* work(void* nothing) {
  say_here();
  take();
  return nothing;
}

static void start(void* (*routine)(void*)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, routine, NULL) != 0) _exit(3);
}

static void wait_here(int count) {
  char byte;
  while (count-- > 0) {
    if (read(here[0], &byte, 1) != 1) _exit(3);
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int processes = atoi(argv[1]);
  const int threads = atoi(argv[2]);
  if (pipe(here) != 0) return 3;
  start(hold);
  wait_here(1);
  for (int i = 2; i < threads; ++i) start(work);
  for (int i = 1; i < processes; ++i) {
    if (fork() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int j = 1; j < threads; ++j) start(work);
    work(NULL);
  }
  wait_here(threads - 2 + (processes - 1) * threads);
  if (write(STDOUT_FILENO, "x", 1) != 1) return 3;
  while (wait(NULL) > 0) continue;
  return 0;
}
