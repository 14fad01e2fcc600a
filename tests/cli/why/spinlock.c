/* A child spins on a spinlock that no thread unlocks. A spinlock does not record which thread locked it. After
 * 100 s, SIGALRM ends the child.
 * spinlock THREADS HOLDER: before the fork, the parent starts THREADS threads that do nothing. HOLDER is "forker" (the
 * thread that forks locks the spinlock first), "child" (the child locks it twice) or "sleeper" (another thread of the
 * child locks it and sleeps). Prints the pid of the child. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_spinlock_t lock;

static void* idle(void* unused) {
  for (;;) pause();
  return unused;
}

static int is_locked;

static void* lock_and_sleep(void* unused) {
  pthread_spin_lock(&lock);
  __atomic_store_n(&is_locked, 1, __ATOMIC_RELEASE);
  return idle(unused);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
  for (int i = 0; i < atoi(argv[1]); ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, idle, NULL);
  }
  if (strcmp(argv[2], "forker") == 0) pthread_spin_lock(&lock);
  const pid_t child = fork();
  if (child == 0) {
    if (strcmp(argv[2], "child") == 0) pthread_spin_lock(&lock);
    if (strcmp(argv[2], "sleeper") == 0) {
      pthread_t thread;
      pthread_create(&thread, NULL, lock_and_sleep, NULL);
      while (!__atomic_load_n(&is_locked, __ATOMIC_ACQUIRE)) sched_yield();
    }
    alarm(100);
    pthread_spin_lock(&lock);
    _exit(0);
  }
  printf("%d\n", (int)child);
  fflush(stdout);
  waitpid(child, NULL, 0);
  return 0;
}
