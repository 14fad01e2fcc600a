// Locks of files that a fork does not copy as the program may think: those of fcntl() and lockf() belong to the process
// and stay with the parent; those of flock() and of open file descriptions are shared, and either side releases them
// for both. Noted is who took which lock, in a small table without a lock of its own; at a fork the kernel is asked
// which of them are held still, and again where one is released.
#pragma once

#include <cstdint>

#include "forksight/trace/file_locks.hpp"
#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"

namespace forksight {

// What a call locks or unlocks, from the beginning of the file; flock(): all of it.
struct FileRange {
  std::uint64_t start;
  std::uint64_t bytes;  // 0: to the end
};

// All three preserve errno. A lock was taken, by the call at `site`:
void note_file_lock(trace::FileLockKind kind, int fd, const FileRange& range, bool is_exclusive, const Site& site);

// Some lock was held by way of this descriptor at a fork: what is released is to be looked at.
bool was_held_at_fork(int fd);
// One is about to be released: what the kernel says of it before that.
struct FileUnlock {
  std::uint32_t index;  // of the lock in the table
  std::uint32_t flags;  // trace::FileLockFlag
  std::int32_t other;
  trace::FileLockEvent event;  // 0: nothing to be said
};
FileUnlock no_unlock();
FileUnlock look_at_file_unlock(trace::FileLockKind kind, int fd, const FileRange& range);
// It was released.
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
