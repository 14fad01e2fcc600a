// The part of the trace format about file locks that were held at a fork. A lock of fcntl() or lockf() belongs to one
// process, so a forked child does not have it. A lock of flock() or F_OFD_SETLK belongs to the open file description,
// which parent and child share, so either of them can release it. Included by format.hpp.
#pragma once

#include <cstdint>

namespace forksight::trace {

enum class FileLockKind : std::uint32_t { kPosix = 1, kFlock = 2, kOfd = 3 };

enum class FileLockEvent : std::uint32_t {
  kForeignUnlock = 1,  // kPosix: a child unlocks a lock that, according to the kernel, its parent has
  kReleased = 2,       // kFlock, kOfd: a child released the lock while its parent had the lock, and had the file open
  kMissed = 3,         // kFlock, kOfd: the process that took the lock unlocks it, but has already lost the lock
};

enum FileLockFlag : std::uint32_t {
  kFileChanged = 1U << 0U,  // kForeignUnlock: the file has been written to since the fork
  // kForeignUnlock: it is known whether parent and child have written to any file since the fork. The next two flags
  // say which of them has done so.
  kWriterKnown = 1U << 1U,
  kChildWrote = 1U << 2U,
  kParentWrote = 1U << 3U,
};

// Tail: the path of the file, `path_bytes` bytes.
struct FileLockRecord {
  std::uint64_t fork;   // ref to kFork
  std::uint64_t stack;  // ref to kStack of the call
  std::uint64_t taken;  // ref to kStack of the call that took the lock, only the innermost frame; 0: not known
  std::uint64_t start;  // start of the locked range, as in the call
  std::uint64_t bytes;  // size of the range; 0: to the end of the file
  FileLockKind kind;
  FileLockEvent event;
  std::int32_t fd;
  std::int32_t owner;  // pid of the process that took the lock
  // kMissed: pid of a process whose lock on the file conflicts with this lock; 0: none. -1: the conflicting lock
  // belongs to an open file description, and the kernel names no process for it.
  std::int32_t other;
  std::uint32_t flags;  // FileLockFlag
  std::uint32_t path_bytes;
  std::uint32_t reserved;
};
static_assert(sizeof(FileLockRecord) == 72);

}  // namespace forksight::trace
