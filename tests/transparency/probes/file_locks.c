/* Locks of files, and the other commands of fcntl(). */
#include "probe.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int g_file;
static int g_other; /* the same file, opened a second time */

static void open_files(void) {
  char path[32] = "/proc/self/fd/000";
  g_file = memfd_create("probe", MFD_CLOEXEC);
  if (g_file < 0 || g_file > 999) abort();
  path[14] = (char)('0' + g_file / 100);
  path[15] = (char)('0' + g_file / 10 % 10);
  path[16] = (char)('0' + g_file % 10);
  char* const digits = path + 14;
  while (digits[0] == '0' && digits[1] != '\0') {
    for (char* at = digits; *at != '\0'; ++at) *at = at[1];
  }
  g_other = open(path, O_RDWR | O_CLOEXEC);
  if (g_other < 0) abort();
}
static void close_files(void) {
  close(g_other);
  close(g_file);
}

static struct flock of(short type, off_t start, off_t bytes) {
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = bytes};
  return lock;
}

PROBE(commands_without_locks) {
  open_files();
  const int copy = fcntl(g_file, F_DUPFD_CLOEXEC, 500);
  SHOW(copy >= 500);
  SHOW(fcntl(copy, F_GETFD));
  SHOW(fcntl(copy, F_SETFD, 0));
  SHOW(fcntl64(copy, F_GETFD));
  SHOW(fcntl(copy, F_SETFL, O_APPEND));
  SHOW(fcntl64(copy, F_GETFL) & O_APPEND);
  SHOW(fcntl(copy, F_GET_SEALS));
  SHOW(close(copy));
  SHOW(fcntl(copy, F_GETFD));
  SHOW(fcntl(g_file, 4711));
  SHOW(fcntl(-1, F_SETFL, O_NONBLOCK));
  close_files();
}

PROBE(calls_that_fail) {
  struct flock lock = of(F_WRLCK, 0, 0);
  struct flock wrong = of(4711, 0, 0);
  struct flock before = of(F_WRLCK, -1, 0);
  open_files();
  SHOW(fcntl(-1, F_SETLK, &lock));
  SHOW(fcntl(g_file, F_SETLK, NULL));
  SHOW(fcntl64(g_file, F_SETLKW, 8));
  SHOW(fcntl(g_file, F_SETLK, &wrong));
  SHOW(fcntl(g_file, F_SETLK, &before));
  lock.l_pid = 1;
  SHOW(fcntl(g_file, F_OFD_SETLK, &lock));
  SHOW(lockf(-1, F_TLOCK, 0));
  SHOW(lockf(g_file, 4711, 0));
  SHOW(lockf64(g_file, F_LOCK, -1));
  SHOW(flock(-1, LOCK_EX));
  SHOW(flock(g_file, 0));
  SHOW(flock(g_file, LOCK_EX | LOCK_SH));
  close_files();
}

static void try_in_child(void) {
  struct flock lock = of(F_WRLCK, 0, 0);
  SHOW(fcntl(g_file, F_SETLK, &lock));
  SHOW(fcntl64(g_file, F_GETLK, &lock));
  say("  by the parent %d, type %d, from %ld for %ld", lock.l_pid == getppid(), lock.l_type, (long)lock.l_start,
      (long)lock.l_len);
  lock = of(F_UNLCK, 0, 0);
  SHOW((int)write(g_file, "x", 1));
  SHOW(fcntl(g_file, F_SETLK, &lock));
  SHOW(lockf(g_file, F_ULOCK, 0));
  lock = of(F_WRLCK, 100, 1);
  SHOW(fcntl(g_file, F_SETLK, &lock));
  SHOW(flock(g_other, LOCK_EX | LOCK_NB));
  SHOW(flock(g_other, LOCK_UN));
}

/* An unlock in the child does not release locks of the parent process. It does release locks of an open file that
 * parent and child share. */
PROBE(locks_across_a_fork) {
  struct flock lock = of(F_WRLCK, 0, 10);
  open_files();
  SHOW(fcntl(g_file, F_SETLK, &lock));
  SHOW(flock(g_other, LOCK_EX));
  in_child(try_in_child);
  lock = of(F_WRLCK, 0, 10);
  SHOW(fcntl(g_file, F_SETLK, &lock));
  SHOW(flock(g_file, LOCK_EX | LOCK_NB));
  SHOW(flock(g_other, LOCK_UN));
  lock = of(F_UNLCK, 0, 0);
  SHOW(fcntl64(g_file, F_SETLKW, &lock));
  close_files();
}

PROBE(ranges) {
  struct flock lock = of(F_RDLCK, 0, 10);
  open_files();
  SHOW(ftruncate(g_file, 100));
  SHOW((int)lseek(g_file, 50, SEEK_SET));
  SHOW(lockf(g_file, F_LOCK, 10));
  SHOW(lockf64(g_file, F_TLOCK, -10));
  SHOW(lockf(g_file, F_TEST, 10));
  SHOW(lockf(g_file, F_ULOCK, -10));
  SHOW(lockf64(g_file, F_ULOCK, 0));
  lock.l_whence = SEEK_END;
  lock.l_start = -10;
  SHOW(fcntl(g_file, F_SETLKW, &lock));
  lock = of(F_WRLCK, 90, 1);
  SHOW(fcntl(g_other, F_OFD_SETLK, &lock));
  SHOW(fcntl(g_other, F_OFD_GETLK, &lock));
  say("  type %d, from %ld for %ld", lock.l_type, (long)lock.l_start, (long)lock.l_len);
  for (int i = 0; i < 40; ++i) {
    lock = of(F_WRLCK, i * 2, 1);
    if (fcntl(g_file, F_SETLK, &lock) != 0) say("  refused %d", i);
  }
  lock = of(F_UNLCK, 0, 0);
  SHOW(fcntl(g_file, F_SETLK, &lock));
  close_files();
}

static void hold(void) {
  open_files();
  if (flock(g_file, LOCK_EX) != 0) abort();
  struct flock lock = of(F_WRLCK, 0, 0);
  if (fcntl(g_file, F_OFD_SETLK, &lock) != 0) abort();
}
static int wait_by_flock(void) { return flock(g_other, LOCK_EX) == 0 ? 0 : errno; }
static int wait_by_fcntl(void) {
  struct flock lock = of(F_WRLCK, 0, 0);
  return fcntl(g_other, F_OFD_SETLKW, &lock) == 0 ? 0 : errno;
}
static void let_go(void) {
  struct flock lock = of(F_UNLCK, 0, 0);
  flock(g_file, LOCK_UN);
  fcntl(g_file, F_OFD_SETLK, &lock);
}
static void say_whose(void) {
  struct flock lock = of(F_WRLCK, 0, 0);
  let_go();
  say("  free for another: %d, %d", flock(g_file, LOCK_EX | LOCK_NB), fcntl(g_file, F_OFD_SETLK, &lock));
  close_files();
}
PROBE_IN(flock_blocks, ANYWHERE & ~IN_HANDLER) {
  static const struct Blocking blocking = {"flock", hold, wait_by_flock, let_go, say_whose, NULL};
  show_blocking(&blocking);
}
PROBE_IN(fcntl_blocks, ANYWHERE & ~IN_HANDLER) {
  static const struct Blocking blocking = {"fcntl", hold, wait_by_fcntl, let_go, say_whose, NULL};
  show_blocking(&blocking);
}
