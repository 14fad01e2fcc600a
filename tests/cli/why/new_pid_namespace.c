// A child in a new pid namespace hangs in a mutex. The parent is in a pid namespace of its own, so that its threads
// have small numbers. The threads of the child have the same numbers.
//   new_pid_namespace SCENE
//   first: the first thread of the parent holds the mutex, and another thread forks.
//   ring: the second thread of the parent holds the mutex. The second thread of the child waits for a mutex that the
//     first thread of the child holds.
//   twice: no thread of the parent holds the mutex. The child locks it twice.
//   Exits with 77 if no pid namespace can be made.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other_mutex = PTHREAD_MUTEX_INITIALIZER;
static int held[2];
static int asked[2];

static void pass(int end) {
  if (write(end, "x", 1) != 1) _exit(98);
}
static void await(int end) {
  char byte;
  if (read(end, &byte, 1) != 1) _exit(98);
}

static void enter_new_namespace(void) {
  if (unshare(CLONE_NEWPID) != 0) _exit(77);
}

static int end_of(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 98;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static void hang(void) {
  pass(STDOUT_FILENO);
  pthread_mutex_lock(&table_mutex);
  _exit(0);
}

static void* fork_into_namespace(void* unused) {
  (void)unused;
  enter_new_namespace();
  const pid_t child = fork();
  if (child == 0) hang();
  _exit(end_of(child));
}

static void first(void) {
  pthread_t thread;
  pthread_mutex_lock(&table_mutex);
  pthread_create(&thread, NULL, fork_into_namespace, NULL);
  pthread_join(thread, NULL);
}

static void* hold(void* unused) {
  pthread_mutex_lock(&table_mutex);
  pass(held[1]);
  for (;;) pause();
  return unused;
}

static void* ask_for_other(void* unused) {
  pass(asked[1]);
  pthread_mutex_lock(&other_mutex);
  return unused;
}

static void ring(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, hold, NULL);
  await(held[0]);
  enter_new_namespace();
  const pid_t child = fork();
  if (child == 0) {
    pthread_mutex_lock(&other_mutex);
    pthread_create(&thread, NULL, ask_for_other, NULL);
    await(asked[0]);
    hang();
  }
  _exit(end_of(child));
}

static void twice(void) {
  enter_new_namespace();
  const pid_t child = fork();
  if (child == 0) {
    pthread_mutex_lock(&table_mutex);
    hang();
  }
  _exit(end_of(child));
}

int main(int argc, char** argv) {
  if (argc != 2 || pipe(held) != 0 || pipe(asked) != 0) return 2;
  enter_new_namespace();
  const pid_t inner = fork();
  if (inner == 0) {
    if (strcmp(argv[1], "first") == 0) first();
    if (strcmp(argv[1], "ring") == 0) ring();
    if (strcmp(argv[1], "twice") == 0) twice();
    return 2;
  }
  return end_of(inner);
}
