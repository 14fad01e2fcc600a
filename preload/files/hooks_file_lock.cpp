// The hooks about file locks: fcntl(), lockf(), flock(). Calls that do not concern locks are passed on after a few
// comparisons. The third argument of fcntl() is passed on unchanged. If the command takes no third argument, the hook
// passes on what the register of that argument contained (x86-64 psABI 3.5.7: variadic integer arguments use the same
// registers as others).
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/file_locks.hpp"
#include "guest/kept_errno.hpp"
#include "guest/memory.hpp"
#include "guest/site.hpp"
#include "guest/sys.hpp"
#include "loader/lazy_next.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

using trace::FileLockKind;

bool is_for_locks(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

// The offset in the file from which `whence` counts: 0, the current position, or the end of the file; -1: not known.
__attribute__((noinline)) std::int64_t find_base(int fd, int whence) {
  if (whence == SEEK_SET) return 0;
  if (whence == SEEK_CUR) return sys::call(SYS_lseek, fd, 0, SEEK_CUR);
  struct stat status {};
  return whence == SEEK_END && sys::call(SYS_fstat, fd, sys::word(&status)) == 0 ? status.st_size : -1;
}

// Sets `out` to the range in bytes from the beginning of the file. Returns false if the range is not known.
bool find_range(int fd, int whence, std::int64_t start, std::int64_t bytes, FileRange& out) {
  const std::int64_t base = find_base(fd, whence);
  if (base < 0 || bytes == INT64_MIN || __builtin_add_overflow(start, base, &start)) return false;
  if (bytes < 0) {
    if (__builtin_add_overflow(start, bytes, &start)) return false;
    bytes = -bytes;
  }
  if (start < 0) return false;
  out = {static_cast<std::uint64_t>(start), static_cast<std::uint64_t>(bytes)};
  return true;
}

template <class Call>
int lock_or_unlock(FileLockKind kind, int fd, short type, const FileRange& range, Frame frame, Call call) {
  if (type == F_UNLCK) {
    const FileUnlock unlock = look_at_file_unlock(kind, fd, range);
    const int result = call();
    if (result == 0) note_file_unlock(unlock, kind, fd, range, frame.site());
    return result;
  }
  const int result = call();
  if (result == 0) note_file_lock(kind, fd, range, type == F_WRLCK, frame.site());
  return result;
}

using Fcntl = int (*)(int, int, unsigned long);

// The shim reads the caller's struct after the call, because the memory exists if the call succeeded. If a lock must be
// examined before the call, the shim reads the struct by a system call, which does not fault.
__attribute__((noinline)) int lock_by_fcntl(Fcntl real, int fd, int command, unsigned long argument, Frame frame) {
  const bool is_ofd = command == F_OFD_SETLK || command == F_OFD_SETLKW;
  const FileLockKind kind = is_ofd ? FileLockKind::kOfd : FileLockKind::kPosix;
  const auto* const memory = reinterpret_cast<const void*>(argument);
  struct flock asked {};
  FileRange range{};
  FileUnlock unlock = empty_unlock();
  if (FORKSIGHT_UNLIKELY(was_held_at_fork(fd)) && read_memory(memory, &asked, sizeof asked) == sizeof asked &&
      asked.l_type == F_UNLCK && find_range(fd, asked.l_whence, asked.l_start, asked.l_len, range)) {
    unlock = look_at_file_unlock(kind, fd, range);
  }
  const int result = real(fd, command, argument);
  if (result == -1) return result;
  const KeptErrno kept;
  memcpy(&asked, memory, sizeof asked);
  if (!find_range(fd, asked.l_whence, asked.l_start, asked.l_len, range)) return result;
  if (asked.l_type == F_UNLCK) {
    note_file_unlock(unlock, kind, fd, range, frame.site());
  } else {
    note_file_lock(kind, fd, range, asked.l_type == F_WRLCK, frame.site());
  }
  return result;
}

__attribute__((always_inline)) inline int control(Fcntl real, int fd, int command, unsigned long argument,
                                                  Frame frame) {
  if (FORKSIGHT_LIKELY(!is_for_locks(command))) return real(fd, command, argument);
  return lock_by_fcntl(real, fd, command, argument, frame);
}

int lock_by_lockf(int (*real)(int, int, off_t), int fd, int command, off_t bytes, Frame frame) {
  FileRange range{};
  const bool is_lock = command == F_LOCK || command == F_TLOCK || command == F_ULOCK;
  if (!is_lock || !find_range(fd, SEEK_CUR, 0, bytes, range)) return real(fd, command, bytes);
  return lock_or_unlock(FileLockKind::kPosix, fd, command == F_ULOCK ? F_UNLCK : F_WRLCK, range, frame,
                        [=] { return real(fd, command, bytes); });
}

}  // namespace

FORKSIGHT_EXPORT(int, fcntl, int fd, int command, unsigned long argument) {
  return control(reinterpret_cast<Fcntl>(FORKSIGHT_LAZY_NEXT(fcntl)), fd, command, argument, FORKSIGHT_FRAME());
}

FORKSIGHT_EXPORT(int, fcntl64, int fd, int command, unsigned long argument) {
  return control(reinterpret_cast<Fcntl>(FORKSIGHT_LAZY_NEXT(fcntl64)), fd, command, argument, FORKSIGHT_FRAME());
}

FORKSIGHT_EXPORT(int, lockf, int fd, int command, off_t bytes) {
  return lock_by_lockf(FORKSIGHT_LAZY_NEXT(lockf), fd, command, bytes, FORKSIGHT_FRAME());
}

FORKSIGHT_EXPORT(int, lockf64, int fd, int command, off_t bytes) {
  return lock_by_lockf(FORKSIGHT_LAZY_NEXT(lockf64), fd, command, bytes, FORKSIGHT_FRAME());
}

FORKSIGHT_EXPORT(int, flock, int fd, int operation) {
  const auto real = FORKSIGHT_LAZY_NEXT(flock);
  const int wish = operation & ~LOCK_NB;
  if (wish != LOCK_EX && wish != LOCK_SH && wish != LOCK_UN) return real(fd, operation);
  const short type = wish == LOCK_UN ? F_UNLCK : wish == LOCK_EX ? F_WRLCK : F_RDLCK;
  return lock_or_unlock(FileLockKind::kFlock, fd, type, {0, 0}, FORKSIGHT_FRAME(), [=] { return real(fd, operation); });
}
