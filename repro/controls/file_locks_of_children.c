// Mechanism: none. Main forks while it holds a file lock. All of the children are correct, or do no harm:
//            One execs.
//            One closes the file.
//            One unlocks the file, but no process wrote to the file under the lock.
//            One writes to another file, and then unlocks the locked file. Only its parent wrote to the locked file.
//            One inherits the lock. The parent closes the file. Then the child writes to the file and unlocks the file.
//            One takes the lock for itself, after its parent has released the lock.
//            One opens the file anew, and takes the lock after its parent has released the lock.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "../baton.h"

enum { kExecs, kCloses, kReleasesNothing, kParentWrites, kTakesOver, kLocksItself, kOpensAnew, kKinds };

static struct baton to_child;
static struct baton output;

static int lock_by_fcntl(int file, int command, short type) {
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
  return fcntl(file, command, &lock);
}
static void print(int fd) {
  if (write(fd, "text\n", 5) != 5) abort();
}
static int is_shared(int kind) { return kind == kTakesOver || kind == kOpensAnew; }

static int live_as(int kind, int file) {
  char path[32];
  int own;
  switch (kind) {
    case kExecs: execl("/bin/true", "true", (char*)NULL); return 1;
    case kCloses: close(file); return 0;
    case kReleasesNothing: print(output.end[1]); return lock_by_fcntl(file, F_SETLK, F_UNLCK);
    case kParentWrites:
      baton_wait(to_child);
      print(output.end[1]);
      return lock_by_fcntl(file, F_SETLK, F_UNLCK);
    case kTakesOver:
      baton_wait(to_child);
      print(file);
      return flock(file, LOCK_UN);
    case kLocksItself:
      baton_wait(to_child);
      if (lock_by_fcntl(file, F_SETLK, F_WRLCK) != 0) return 1;
      print(file);
      return lock_by_fcntl(file, F_SETLK, F_UNLCK);
    case kOpensAnew:
      snprintf(path, sizeof path, "/proc/self/fd/%d", file);
      own = open(path, O_RDWR | O_CLOEXEC);
      baton_wait(to_child);
      return flock(own, LOCK_EX | LOCK_NB) != 0 || flock(own, LOCK_UN) != 0;
    default: return 0;
  }
}

int main(void) {
  int wrong = 0;
  to_child = baton_make();
  output = baton_make();
  for (int kind = 0; kind < kKinds; ++kind) {
    const int file = memfd_create("ledger", MFD_CLOEXEC);
    wrong |= is_shared(kind) ? flock(file, LOCK_EX) : lock_by_fcntl(file, F_SETLKW, F_WRLCK);
    const pid_t child = fork();
    if (child == 0) _exit(live_as(kind, file));
    if (kind == kParentWrites) print(file);
    if (kind == kTakesOver) close(file);
    if (kind == kLocksItself) wrong |= lock_by_fcntl(file, F_SETLK, F_UNLCK);
    if (kind == kOpensAnew) wrong |= flock(file, LOCK_UN);
    if (kind >= kParentWrites && kind <= kOpensAnew) baton_pass(to_child);
    wrong |= end_of(child);
    if (kind == kTakesOver) continue;
    wrong |= is_shared(kind) ? flock(file, LOCK_UN) : lock_by_fcntl(file, F_SETLK, F_UNLCK);
    close(file);
  }
  return wrong;
}
