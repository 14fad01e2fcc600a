/* Two threads fork at once. The exit status is 0 if their prepare handlers ran one after the other, as they must with
 * --cure=serialise-forks. It is 3 if both threads were in the handler at the same time, as without the cure. It is 1 if
 * a fork failed. The result does not depend on timing: the first thread stays in the handler until the second thread is
 * in the handler, too, or sleeps in a futex wait in fork() before its handler runs. With "nested" the handler itself
 * forks. This inner fork must not wait for the end of the outer fork. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../repro/call_of.h"

static atomic_int g_inside, g_overlap, g_forking, g_nested;
static atomic_int g_tids[2];
static int g_nest;

static int fork_once(void) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void prepare(void) {
  if (g_nest) {
    if (atomic_exchange(&g_nested, 1) == 0 && !fork_once()) abort();
    return;
  }
  if (atomic_fetch_add(&g_inside, 1) != 0) atomic_store(&g_overlap, 1);
  const int other = atomic_load(&g_tids[0]) == (int)syscall(SYS_gettid) ? 1 : 0;
  while (atomic_load(&g_forking) == 2 && atomic_load(&g_inside) < 2 && call_of(atomic_load(&g_tids[other])) != SYS_futex) {
    sched_yield();
  }
}
static void parent(void) {
  if (!g_nest) atomic_fetch_sub(&g_inside, 1);
}

static void* fork_in_thread(void* index) {
  atomic_store(&g_tids[(size_t)index], (int)syscall(SYS_gettid));
  atomic_fetch_add(&g_forking, 1);
  while (atomic_load(&g_forking) < 2) sched_yield();
  const int good = fork_once();
  atomic_store(&g_forking, 3);
  return good ? index : (void*)9;
}

int main(int argc, char** argv) {
  pthread_t threads[2];
  g_nest = argc > 1 && strcmp(argv[1], "nested") == 0;
  if (g_nest) atomic_store(&g_forking, 1);
  pthread_atfork(prepare, parent, NULL);
  for (size_t i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, fork_in_thread, (void*)i);
  for (size_t i = 0; i < 2; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    if (result != (void*)i) return 1;
  }
  return atomic_load(&g_overlap) ? 3 : 0;
}
