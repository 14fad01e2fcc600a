// Mechanism: main locks a file by fcntl() and forks a worker. The worker writes to the file and unlocks the file. But
//            the lock belongs to main alone, which took the lock. So the worker never has the lock, and its unlock has
//            no effect.
//            -DLOCKF:   the same by lockf().
// To blame:  the fork: locks of fcntl() are not inherited.
// User sees: now and then two workers write to the file at the same time.
// Fix:       take the lock in the child.
// Repaired:  the child waits for the lock itself, until its parent has released it.
//
// EXPECT-BARE: ok
// EXPECT: file-lock-lost likely corruption culprit="lock of memfd:ledger (deleted)" victims=0
// EXPECT-STACK: stack release@release work@call
// EXPECT-STACK: culprit take@take
// EXPECT-STACK: fork main@fork
// EXPECT(lockf): file-lock-lost likely corruption culprit="lock of memfd:ledger (deleted)" victims=0
// EXPECT-STACK(lockf): stack release@lockf_release work@call
// EXPECT-STACK(lockf): fork main@fork
#include <fcntl.h>
#include <sys/mman.h>

#include "../baton.h"

static int file;

#ifdef LOCKF
static void take(void) {
  if (lockf(file, F_LOCK, 0) != 0) abort();
}
__attribute__((noinline)) static void release(void) {
  if (lseek(file, 0, SEEK_SET) != 0) abort();
  if (lockf(file, F_ULOCK, 0) != 0) abort();  // MARK: lockf_release
}
#else
static struct flock whole(short type) { return (struct flock){.l_type = type, .l_whence = SEEK_SET}; }
__attribute__((noinline)) static void take(void) {
  struct flock lock = whole(F_WRLCK);
  if (fcntl(file, F_SETLKW, &lock) != 0) abort();  // MARK: take
}
__attribute__((noinline)) static void release(void) {
  struct flock lock = whole(F_UNLCK);
  if (fcntl(file, F_SETLK, &lock) != 0) abort();  // MARK: release
}
#endif

__attribute__((noinline)) static void work(void) {
#ifdef REPAIRED
  take();
#endif
  if (write(file, "paid\n", 5) != 5) abort();
  release();  // MARK: call
  close(file);
}

int main(void) {
  file = memfd_create("ledger", MFD_CLOEXEC);
  take();
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    work();
    _exit(0);
  }
#ifdef REPAIRED
  release();
#endif
  return end_of(child);
}
