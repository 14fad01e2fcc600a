// Mechanism: main takes a lock of flock() and forks a child. The child runs the parent's cleanup and releases the lock.
//            The lock belongs to the open file, which parent and child share. Another process takes the lock while the
//            parent still relies on it.
//            -DOFD:     the same by F_OFD_SETLK.
//            -DALONE:   no other process takes the lock.
//            -DREADERS: all processes lock for reading. So the parent's lock would not have kept the other process out.
// To blame:  the child, which releases a lock that it did not take.
// User sees: two processes work at the same time, although the lock should admit only one.
// Fix:       let the child close the descriptor instead of releasing the lock.
// Repaired:  the child only closes the descriptor.
//
// EXPECT-BARE: ok
// EXPECT: file-lock-shared proven corruption culprit="lock of memfd:ledger (deleted)" victims=0
// EXPECT-STACK: stack release@release clean_up@call
// EXPECT-STACK: culprit take@take
// EXPECT-STACK: fork main@fork
// EXPECT(ofd): file-lock-shared proven corruption culprit="lock of memfd:ledger (deleted)" victims=0
// EXPECT-STACK(ofd): stack lock_as@ofd release@release clean_up@call
// EXPECT-STACK(ofd): culprit lock_as@ofd take@take
// EXPECT(alone): file-lock-shared possible corruption culprit="lock of memfd:ledger (deleted)" victims=0
// EXPECT-STACK(alone): stack release@release clean_up@call
// EXPECT(readers): file-lock-shared possible corruption culprit="lock of memfd:ledger (deleted)" victims=0
// EXPECT-STACK(readers): stack release@release clean_up@call
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "../baton.h"

#ifdef OFD
static int lock_as(int file, short type) {
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
  return fcntl(file, F_OFD_SETLKW, &lock);  // MARK: ofd
}
#define LOCK(file) lock_as(file, F_WRLCK)
#define UNLOCK(file) lock_as(file, F_UNLCK)
#else
#ifdef READERS
#define LOCK(file) flock(file, LOCK_SH)
#else
#define LOCK(file) flock(file, LOCK_EX)
#endif
#define UNLOCK(file) flock(file, LOCK_UN)
#endif

__attribute__((noinline)) static void take(int file) {
  if (LOCK(file) != 0) abort();  // MARK: take
}
__attribute__((noinline)) static void release(int file) {
  if (UNLOCK(file) != 0) abort();  // MARK: release
}

__attribute__((noinline)) static void clean_up(int file) {
#ifndef REPAIRED
  release(file);  // MARK: call
#endif
  close(file);
}

#ifndef ALONE
static void rival(int file, struct baton has_it, struct baton shall_end) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  const int own = open(path, O_RDWR | O_CLOEXEC);
  if (own < 0) abort();
  take(own);
  baton_pass(has_it);
  baton_wait(shall_end);
}
#endif

int main(void) {
  const int file = memfd_create("ledger", MFD_CLOEXEC);
  take(file);
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    clean_up(file);
    _exit(0);
  }
  int wrong = end_of(child);
#ifndef ALONE
  const struct baton has_it = baton_make();
  const struct baton shall_end = baton_make();
  const pid_t other = fork();
  if (other == 0) {
    rival(file, has_it, shall_end);
    _exit(0);
  }
#ifdef REPAIRED
  release(file);
#endif
  baton_wait(has_it);
#ifndef REPAIRED
  release(file);
#endif
  baton_pass(shall_end);
  wrong |= end_of(other);
#else
  release(file);
#endif
  return wrong;
}
