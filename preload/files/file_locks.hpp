// File locks at a fork. The locks of fcntl() and lockf() belong to the parent alone: a forked child does not have them.
// The locks of flock() and of open file descriptions belong to both parent and child: if one of them releases such a
// lock, both have lost it.
//   A small lock-free table notes which process took which lock. At a fork, and when a lock is released, the shim asks
//   the kernel which of these locks are still held.
#pragma once

#include <cstdint>

#include "forksight/trace/file_locks.hpp"
#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"

namespace forksight {

// The range of bytes that a call locks or unlocks. Its start counts from the beginning of the file. flock() locks the
// whole file.
struct FileRange {
  std::uint64_t start;
  std::uint64_t bytes;  // 0: to the end
};

// Called when the call at `site` has taken a lock: enters the lock into the table. The functions of this file preserve
// errno.
void note_file_lock(trace::FileLockKind kind, int fd, const FileRange& range, bool is_exclusive, const Site& site);

// True if a lock was held through this descriptor at a fork, so that a release must be examined.
bool was_held_at_fork(int fd);
// A lock that is about to be released, and what the kernel says about it before the release.
struct FileUnlock {
  std::uint32_t index;         // index of the lock in the table
  std::uint32_t flags;         // trace::FileLockFlag
  std::int32_t other;          // FileLockRecord::other
  trace::FileLockEvent event;  // 0: nothing to report
};
FileUnlock empty_unlock();
// Called before a release. Returns the facts to record about the release. FileUnlock::event is 0 if there is nothing to
// report.
FileUnlock look_at_file_unlock(trace::FileLockKind kind, int fd, const FileRange& range);
// Called when the lock was released. Records what look_at_file_unlock() has found, and removes the released locks from
// the table.
void note_file_unlock(const FileUnlock& unlock, trace::FileLockKind kind, int fd, const FileRange& range,
                      const Site& site);

namespace at_fork {
struct FileLocks {
  static bool tells();
  static void records(const Fork& fork);
  static void continues(const Fork& fork);
  static void starts_any(std::uint64_t record);
};
}  // namespace at_fork

}  // namespace forksight
