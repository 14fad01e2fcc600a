// The timers and file locks of a process that forks. The child has none of the timers. It lacks a file lock, or shares
// it with its parent. No system call reports any of this.
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
  std::uint64_t interval_ns = 0;  // 0: in the parent it expires only once
};

// kPosix: locks of fcntl() and lockf(), which belong to a process. The others belong to an open file, which a fork
// shares.
enum class FileLockKind { kPosix, kFlock, kOfd };
enum class FileLockEvent {
  kForeignUnlock,  // kPosix: a child unlocked what its parent has locked; the child has no such lock
  kReleased,       // a child released the lock, which its parent had until then
  kMissed,         // the process that took the lock unlocks it, but has already lost it
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
  // kMissed: pid of a process whose lock conflicts with this one; 0: none; -1: that lock belongs to an open file
  std::int32_t other = 0;
  bool file_changed = false;  // kForeignUnlock: the file was written to after the fork
  bool writer_known = false;  // true: `child_wrote` and `parent_wrote` are known
  bool child_wrote = false;   // since the fork, to any file
  bool parent_wrote = false;
  Stack stack;
  Stack taken_at;  // one frame
};

}  // namespace forksight::model
