// Mechanism: two processes lock two files in opposite orders.
//            -DCROSS:   one process holds a lock of fcntl() and waits for a message of the other one. The other one
//                       waits for the lock.
//            -DSELF:    one process locks a file by two descriptors.
// To blame:  the two orders. Or the process that waits for a message while it holds the lock. Or the second open().
// User sees: two instances of a tool that stop now and then.
// Fix:       lock the files in one order. Release the lock before waiting.
// Repaired:  the child locks the files in the parent's order.
//
// EXPECT-BARE: hang
// EXPECT: flock-deadlock proven hang victims=0
#include <fcntl.h>
#include <sys/file.h>

#include "../baton.h"

static char paths[2][64];

static int make_file(int number) {
  snprintf(paths[number], sizeof paths[number], "/tmp/forksight-flock-%d-XXXXXX", number);
  const int fd = mkstemp(paths[number]);
  if (fd < 0) abort();
  return fd;
}

// A lock of flock() belongs to the open file, so each process opens the file for itself.
__attribute__((unused)) static int open_file(int number) {
  const int fd = open(paths[number], O_RDWR | O_CLOEXEC);
  if (fd < 0) abort();
  return fd;
}

__attribute__((unused)) static void lock_file(int fd) {
  if (flock(fd, LOCK_EX) != 0) abort();
}

#if defined(SELF)
int main(void) {
  const int first = make_file(0), again = open_file(0);
  unlink(paths[0]);
  lock_file(first);
  lock_file(again);
  return 0;
}
#elif defined(CROSS)
int main(void) {
  const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  const struct baton is_locked = baton_make(), message = baton_make();
  const int file = make_file(0);
  unlink(paths[0]);
  const pid_t child = fork();
  if (child == 0) {
    struct flock mine = whole;
    close(message.end[0]);
    baton_wait(is_locked);
    if (fcntl(file, F_SETLKW, &mine) != 0) abort();
    baton_pass(message);
    _exit(0);
  }
  struct flock mine = whole;
  close(message.end[1]);
  if (fcntl(file, F_SETLKW, &mine) != 0) abort();
  baton_pass(is_locked);
  baton_wait(message);
  return end_of(child);
}
#else
int main(void) {
  const struct baton parent_has = baton_make(), child_has = baton_make();
  const int files[2] = {make_file(0), make_file(1)};
  const pid_t child = fork();
  if (child == 0) {
    const int own[2] = {open_file(0), open_file(1)};
    close(files[0]);
    close(files[1]);
#ifdef REPAIRED
    baton_pass(child_has);
    baton_wait(parent_has);
    lock_file(own[0]);
    lock_file(own[1]);
#else
    lock_file(own[1]);
    baton_pass(child_has);
    baton_wait(parent_has);
    lock_file(own[0]);
#endif
    _exit(0);
  }
  lock_file(files[0]);
  baton_wait(child_has);
  unlink(paths[0]);
  unlink(paths[1]);
  baton_pass(parent_has);
  lock_file(files[1]);
  close(files[0]);
  close(files[1]);
  return end_of(child);
}
#endif
