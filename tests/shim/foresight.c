// Scenes that fill the tables of --lock-order and --predict.
// foresight share|joined|joined_by_another|orders|holds|generations
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kLocks = 6000, kGenerations = 3, kMs = 1000000 };

static pthread_mutex_t first_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t locks[kLocks];
static int worker_done[2], main_done[2];

static long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}
static void spend_ms(long ms) {
  for (const long end = now_ns() + ms * kMs; now_ns() < end;) {
  }
}
static void pass(const int* pipe_ends) {
  if (write(pipe_ends[1], "", 1) != 1) abort();
}
static void await(const int* pipe_ends) {
  char byte;
  if (read(pipe_ends[0], &byte, 1) != 1) abort();
}

static void* hold_for_a_while(void* held_ns) {
  for (int i = 0; i < 3; ++i) {
    pthread_mutex_lock(&first_mu);
    const long since = now_ns();
    spend_ms(10);
    *(long*)held_ns += now_ns() - since;
    pthread_mutex_unlock(&first_mu);
  }
  pass(worker_done);
  await(main_done);
  return NULL;
}

static void* take_under_another(void* unused) {
  pthread_mutex_lock(&first_mu);
  for (int i = 0; i < kLocks; ++i) {
    pthread_mutex_lock(&locks[i]);
    pthread_mutex_unlock(&locks[i]);
  }
  pthread_mutex_unlock(&first_mu);
  return unused;
}

static void* take_each(void* unused) {
  for (int i = 0; i < kLocks; ++i) {
    pthread_mutex_lock(&locks[i]);
    pthread_mutex_unlock(&locks[i]);
  }
  return unused;
}

static void run(void* (*work)(void*)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL) != 0) abort();
  pthread_join(thread, NULL);
}

static void take_in_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    pthread_mutex_lock(&first_mu);
    pthread_mutex_unlock(&first_mu);
    _exit(0);
  }
  int status = 1;
  if (waitpid(child, &status, 0) != child || status != 0) abort();
}

// Prints for how many thousandths of the time the worker held the lock.
static void share(void) {
  static long held_ns;
  pthread_t worker;
  const long since = now_ns();
  if (pthread_create(&worker, NULL, hold_for_a_while, &held_ns) != 0) abort();
  await(worker_done);
  spend_ms(30);
  const long window = now_ns() - since;
  take_in_child();
  pass(main_done);
  pthread_join(worker, NULL);
  printf("%ld\n", held_ns * 1000 / window);
}

static void* hold_long(void* unused) {
  pthread_mutex_lock(&first_mu);
  spend_ms(30);
  pthread_mutex_unlock(&first_mu);
  return unused;
}
static void* hold_shortly(void* run_other) {
  pthread_mutex_lock(&first_mu);
  pthread_mutex_unlock(&first_mu);
  if (run_other != NULL) run(hold_long);
  pass(worker_done);
  await(main_done);
  return NULL;
}

// At the fork one other thread exists, `lasting`. A third thread has held the lock for long. With `by_another`,
// `lasting` has joined the third thread. Otherwise the forking thread has joined it.
static void joined(bool by_another) {
  pthread_t lasting;
  if (pthread_create(&lasting, NULL, hold_shortly, by_another ? &lasting : NULL) != 0) abort();
  await(worker_done);
  if (!by_another) run(hold_long);
  take_in_child();
  pass(main_done);
  pthread_join(lasting, NULL);
}

// Each generation fills the tables, and then forks the next generation.
static void generations(int left) {
  run(take_under_another);
  if (left == 0) return;
  const pid_t child = fork();
  if (child == 0) {
    generations(left - 1);
    _exit(0);
  }
  int status = 1;
  if (waitpid(child, &status, 0) != child || status != 0) abort();
}

int main(int count, char** arguments) {
  const char* const what = count > 1 ? arguments[1] : "";
  if (pipe(worker_done) != 0 || pipe(main_done) != 0) abort();
  for (int i = 0; i < kLocks; ++i) pthread_mutex_init(&locks[i], NULL);
  if (strcmp(what, "share") == 0) share();
  if (strcmp(what, "joined") == 0) joined(false);
  if (strcmp(what, "joined_by_another") == 0) joined(true);
  if (strcmp(what, "orders") == 0) run(take_under_another);
  if (strcmp(what, "holds") == 0) run(take_each), take_in_child();
  if (strcmp(what, "generations") == 0) generations(kGenerations);
  return 0;
}
