/* Functions that wait for the end of a thread. */
#include "probe.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

static pthread_t g_thread;
static int g_pipe[2];

static void* wait_for_pipe(void* value) {
  char byte;
  if (read(g_pipe[0], &byte, 1) < 0) return NULL;
  return value;
}
static void begin(void) {
  if (pipe(g_pipe) != 0) _exit(1);
  pthread_create(&g_thread, NULL, wait_for_pipe, (void*)(intptr_t)5);
}
static void end(void) {
  close(g_pipe[1]);
  g_pipe[1] = -1;
}
static void close_pipe(void) {
  close(g_pipe[0]);
  if (g_pipe[1] >= 0) close(g_pipe[1]);
}

PROBE(results) {
  const struct timespec past = long_ago();
  void* result = NULL;
  begin();
  SHOW(pthread_timedjoin_np(g_thread, &result, &past));
  SHOW(pthread_clockjoin_np(g_thread, &result, CLOCK_MONOTONIC, &past));
  const struct timespec soon = in_ms(CLOCK_MONOTONIC, 20);
  SHOW_TIMED(pthread_clockjoin_np(g_thread, &result, CLOCK_MONOTONIC, &soon), 19);
  SHOW(pthread_tryjoin_np(g_thread, &result));
  end();
  SHOW(pthread_join(g_thread, &result));
  say("  result %ld", (long)(intptr_t)result);
  close_pipe();
  begin();
  end();
  int error = EBUSY;
  while (error == EBUSY) error = pthread_tryjoin_np(g_thread, &result);
  say("  tried until %d: result %ld", error, (long)(intptr_t)result);
  close_pipe();
  SHOW(pthread_join(pthread_self(), NULL));
}
