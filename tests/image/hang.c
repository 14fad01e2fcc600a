// A program that hangs in known places. The locker thread waits for a mutex that the first thread holds. The reader
// thread reads from an empty pipe. The handler thread does the same in a signal handler on an alternate stack. The
// spinner thread spins. The first thread joins the locker. The program writes a byte when the spinner runs. At that
// time, the other threads may not yet be in these calls.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

pthread_mutex_t held_mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long turns;
static volatile int spinning;
static int nothing[2];

__attribute__((noinline)) static void take_mutex(const char* why) {
  char room[200];
  snprintf(room, sizeof room, "%s", why);
  pthread_mutex_lock(&held_mutex);
  turns += (unsigned long)room[0];
}

__attribute__((noinline)) static int read_nothing(void) {
  char byte;
  return (int)read(nothing[0], &byte, 1) + 1;
}

__attribute__((noinline)) static void spin(void) {
  for (;;) spinning = 1;
}

static void on_signal(int number) { turns += (unsigned long)(read_nothing() + number); }

static void* lock_thread(void* argument) {
  prctl(PR_SET_NAME, "locker");
  take_mutex(argument);
  return NULL;
}

static void* read_thread(void* argument) {
  prctl(PR_SET_NAME, "reader");
  turns += (unsigned long)read_nothing();
  return argument;
}

static void* signal_thread(void* argument) {
  prctl(PR_SET_NAME, "handler");
  stack_t own = {.ss_sp = malloc(65536), .ss_flags = 0, .ss_size = 65536};
  sigaltstack(&own, NULL);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, NULL);
  pthread_kill(pthread_self(), SIGUSR1);
  return argument;
}

static void* spin_thread(void* argument) {
  prctl(PR_SET_NAME, "spinner");
  spin();
  return argument;
}

__attribute__((noinline)) static void wait_for(pthread_t thread) { pthread_join(thread, NULL); }

int main(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (pipe(nothing) != 0) return 1;
  pthread_mutex_lock(&held_mutex);
  pthread_t threads[4];
  pthread_create(&threads[0], NULL, lock_thread, "the test");
  pthread_create(&threads[1], NULL, read_thread, NULL);
  pthread_create(&threads[2], NULL, signal_thread, NULL);
  pthread_create(&threads[3], NULL, spin_thread, NULL);
  while (!spinning) sched_yield();
  if (write(STDOUT_FILENO, "x", 1) != 1) return 1;
  wait_for(threads[0]);
  return 0;
}
