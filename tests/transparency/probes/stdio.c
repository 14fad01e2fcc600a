/* Streams are flushed, closed or purged, with and without unwritten bytes at a fork. */
#include "probe.h"

#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char g_text[256];
static FILE* g_stream;
static int g_end; /* the reading end of the pipe that the stream writes to */

static void open_stream(void) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  g_end = ends[0];
  g_stream = fdopen(ends[1], "w");
  if (g_stream == NULL) abort();
}
/* Prints all bytes that were written into the pipe. All writing ends must be closed. */
static void say_written(void) {
  size_t filled = 0;
  ssize_t got = 0;
  while ((got = read(g_end, g_text + filled, sizeof g_text - 1 - filled)) > 0) filled += (size_t)got;
  g_text[filled] = '\0';
  close(g_end);
  say("  written '%s'", g_text);
}

PROBE(without_a_fork) {
  open_stream();
  SHOW(fflush(g_stream));
  SHOW(fputs("one ", g_stream) >= 0);
  SHOW(fflush(g_stream));
  SHOW(fputs("two", g_stream) >= 0);
  SHOW((__fpurge(g_stream), __fpending(g_stream)));
  SHOW(fputs("three", g_stream) >= 0);
  SHOW(fclose(g_stream));
  say_written();
}

PROBE(streams_that_fail) {
  open_stream();
  SHOW(fputs("nobody reads it", g_stream) >= 0);
  SHOW(close(fileno(g_stream)));
  SHOW(fflush(g_stream));
  SHOW(ferror(g_stream) != 0);
  SHOW(fclose(g_stream));
  close(g_end);
}

static void end_by_exit(void) { exit(0); }
static void flush_and_go(void) {
  SHOW(fflush(g_stream));
  _exit(0);
}
static void flush_all_and_go(void) {
  SHOW(fflush(NULL));
  _exit(0);
}
static void close_and_go(void) {
  SHOW(fclose(g_stream));
  _exit(0);
}
static void purge_and_exit(void) {
  __fpurge(g_stream);
  exit(0);
}
static void go(void) { _exit(0); }
static void fork_with_bytes(void (*in_the_child)(void)) {
  int status = 0;
  open_stream();
  SHOW(fputs("once ", g_stream) >= 0);
  errno = kSentinel;
  const pid_t child = fork();
  if (child == 0) {
    say("  child: errno %d, %zu bytes", errno, __fpending(g_stream));
    in_the_child();
    _exit(1);
  }
  const int error = errno;
  SHOW(waitpid(child, &status, 0) == child);
  say("  status %d, errno %d, %zu bytes", status, error, __fpending(g_stream));
  SHOW(fflush(g_stream));
  SHOW(fputs("more", g_stream) >= 0);
  SHOW(fclose(g_stream));
  say_written();
}
PROBE(with_bytes_at_a_fork) {
  fork_with_bytes(go);
  fork_with_bytes(flush_and_go);
  fork_with_bytes(close_and_go);
}
/* In these children exit() also runs the exit handlers of contexts.c. So this probe runs only in main, where no exit
 * handler is running yet. */
PROBE_IN(children_that_exit, IN_MAIN | IN_MAIN_OF_MANY) {
  fork_with_bytes(end_by_exit);
  fork_with_bytes(purge_and_exit);
  fork_with_bytes(flush_all_and_go);
}

/* More streams have unwritten bytes than the shim records. */
PROBE(many_streams) {
  enum { kStreams = 24 };
  static FILE* streams[kStreams];
  int status = 0;
  for (int i = 0; i < kStreams; ++i) {
    streams[i] = fopen("/dev/full", "w");
    if (streams[i] == NULL || fputs("x", streams[i]) < 0) abort();
  }
  const pid_t child = fork();
  if (child == 0) {
    int failed = 0;
    for (int i = 0; i < kStreams; ++i) failed += fflush(streams[i]) != 0;
    say("  child: failed %d", failed);
    _exit(0);
  }
  SHOW(waitpid(child, &status, 0) == child);
  int failed = 0;
  for (int i = 0; i < kStreams; ++i) failed += fclose(streams[i]) != 0;
  say("  failed %d", failed);
}
