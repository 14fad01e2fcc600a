// Mechanism: main prints into a buffer and forks. fork() copies the buffer. The child ends by exit(), which flushes the
//            child's copy. Main flushes its own copy when it closes the file. So the file has the printed line twice.
// To blame:  the fork while the buffer has bytes, and exit() in the child. On a terminal the buffer is flushed after
//            each line, so the program looks right there. If its output is a file or a pipe, the output is wrong.
// User sees: lines that appear once more for each child, mostly the first lines of a log.
// Fix:       call fflush(NULL) before fork(), or call _exit() in the child.
// Repaired:  main calls fflush(NULL) before the fork.
//            These variants must be silent, too:
//            left:    the child ends by _exit() and writes nothing.
//            purged:  the child discards its copy.
//            moved:   the child redirects the descriptor to /dev/null, as a daemon does.
//            execs:   the child execs.
//            stale:   the first child writes nothing. The parent then writes the bytes by printing more, and forks
//                     another child.
//
// EXPECT-BARE: error
// EXPECT: stdio-duplicated proven corruption victims=0
// EXPECT-STACK: stack main@exit
// EXPECT-STACK: fork main@fork
//
// Variant `threads`: the parent has a second thread. The child flushes its copy by fflush(), and ends by _exit().
// EXPECT-BARE(threads): error
// EXPECT(threads): stdio-duplicated proven corruption victims=0
// EXPECT-STACK(threads): stack main@flush
// EXPECT-STACK(threads): fork main@fork
//
// Variant `children`: three children flush their copies. The parent discards its own copy.
// EXPECT-BARE(children): error
// EXPECT(children): stdio-duplicated proven corruption victims=0
// EXPECT-STACK(children): fork main@fork
//
// EXPECT-BARE(left): ok
// EXPECT-NONE(left)
// EXPECT-BARE(purged): ok
// EXPECT-NONE(purged)
// EXPECT-BARE(moved): ok
// EXPECT-NONE(moved)
// EXPECT-BARE(execs): ok
// EXPECT-NONE(execs)
// EXPECT-BARE(stale): ok
// EXPECT-NONE(stale)
#include <fcntl.h>
#include <pthread.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>

#include "../baton.h"

static const char kLine[] = "the job begins\n";

static void* watch(void* unused) {
  park();
  return unused;
}

static void run_child(FILE* log) {
#if defined LEFT || defined STALE
  (void)log;
  _exit(0);
#elif defined PURGED
  __fpurge(log);
  exit(0);
#elif defined MOVED
  dup2(open("/dev/null", O_WRONLY), fileno(log));
  exit(0);
#elif defined EXECS
  (void)log;
  execl("/bin/true", "true", NULL);
  _exit(1);
#else
  (void)log;
#endif
}

static int lines_in(const char* path) {
  char text[256];
  int lines = 0;
  FILE* const file = fopen(path, "r");
  if (file == NULL) abort();
  while (fgets(text, sizeof text, file) != NULL) lines += strcmp(text, kLine) == 0;
  fclose(file);
  return lines;
}

int main(void) {
  char path[] = "/tmp/forksight-case-XXXXXX";
  FILE* const log = fdopen(mkstemp(path), "w");
  if (log == NULL) abort();
#ifdef THREADS
  pthread_t thread;
  pthread_create(&thread, NULL, watch, NULL);
#else
  (void)watch;
#endif
  fputs(kLine, log);
#ifdef REPAIRED
  fflush(NULL);
#endif
#ifdef CHILDREN
  enum { kChildren = 3 };
#else
  enum { kChildren = 1 };
#endif
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = fork();  // MARK: fork
    if (child == 0) {
      run_child(log);
#ifdef THREADS
      fflush(log);  // MARK: flush
      _exit(0);
#else
      exit(0);  // MARK: exit
#endif
    }
    if (end_of(child) != 0) abort();
  }
#ifdef CHILDREN
  __fpurge(log);
#endif
#ifdef STALE
  // Prints until the end of a block. libc writes complete blocks at once, so no byte stays in the buffer.
  static char more[2 * BUFSIZ];
  struct stat written;
  if (fwrite(more, 1, sizeof more - strlen(kLine), log) == 0 || __fpending(log) != 0) abort();
  if (fstat(fileno(log), &written) != 0 || written.st_size != sizeof more) abort();
  const pid_t child = fork();
  if (child == 0) exit(0);
  if (end_of(child) != 0) abort();
#endif
  fclose(log);
  const int lines = lines_in(path);
  unlink(path);
  return lines == 1 ? 0 : 1;
}
