// Timers and file locks of a process that forks. The child has none of the timers. A file lock that belongs to a
// process stays with the parent. A file lock that belongs to an open file then belongs to parent and child together. No
// system call tells the child or the parent about this.
#pragma once

#include <cstdint>
#include <string>

#include "model/ids.hpp"
#include "model/stack.hpp"

namespace forksight::model {

// A timer that was armed at a fork. The child does not have it.
enum class TimerKind { kReal, kPosix };
struct ArmedTimer {
  TimerKind kind = TimerKind::kReal;
  int signal = 0;
  std::uint64_t remaining_ns = 0;
  std::uint64_t interval_ns = 0;  // 0: the parent's timer expires only once
};

// kPosix: a lock of lockf() or of fcntl() with F_SETLK, which belongs to a process. The other locks belong to an open
// file. After a fork, parent and child share this open file.
enum class FileLockKind { kPosix, kFlock, kOfd };
enum class FileLockEvent {
  kForeignUnlock,  // kPosix: a child unlocked what only its parent had locked
  kReleased,       // kFlock, kOfd: a child released the lock, which its parent had until then
  kMissed,         // kFlock, kOfd: the process that took the lock releases it, but no longer had the lock
};

// What happened to a file lock that was held at a fork.
struct FileLockUse {
  ForkId fork = 0;
  ProcessId process = 0;
  std::int32_t tid = 0;
  std::uint64_t time_ns = 0;
  FileLockKind kind = FileLockKind::kPosix;
  FileLockEvent event = FileLockEvent::kForeignUnlock;
  int fd = -1;
  std::string path;         // "" if it is not known
  std::uint64_t start = 0;  // the first byte of the range
  std::uint64_t bytes = 0;  // 0: to the end of the file
  std::int32_t owner = 0;   // pid of the process that took the lock
  // kMissed: the pid of a process that holds a conflicting lock. 0: there is no such lock. -1: the conflicting lock
  // belongs to an open file, so no process can be named.
  std::int32_t other = 0;
  bool file_changed = false;  // kForeignUnlock: the file was written to after the fork
  bool writer_known = false;  // true: `child_wrote` and `parent_wrote` are known
  bool child_wrote = false;   // the child has written to some file since the fork
  bool parent_wrote = false;
  Stack stack;
  Stack taken_at;  // one frame
};

}  // namespace forksight::model
