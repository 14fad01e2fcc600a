// Parses file locks, from /proc/locks and from fdinfo, and compares them with the lock that a thread waits for. All
// functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace forksight::proc {

// kPosix: fcntl() locks, of a process or of an open file. Both kinds exclude each other.
enum class LockFamily { kFlock, kPosix, kOther };

struct FileLock {
  LockFamily family = LockFamily::kOther;
  bool waits = false;  // nobody holds this lock: its process waits for it
  // F_OFD_SETLK or flock: the lock belongs to the open file, and so to every process that has this file open
  bool is_of_file = false;
  bool writes = false;
  std::int32_t pid = 0;  // the process that took the lock; -1 for F_OFD_SETLK
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint64_t inode = 0;
  std::uint64_t start = 0;
  std::uint64_t end = UINT64_MAX;
};

// Parses a line of /proc/locks, or the value of a "lock:" line in fdinfo.
std::optional<FileLock> parse_file_lock(std::string_view line);
// Parses all lines of /proc/locks. Skips lines that it does not understand.
std::vector<FileLock> parse_file_locks(std::string_view text);
// Parses the "lock:" lines in the fdinfo of a descriptor. These are the locks on the file that belong to the open file
// or to the process that has the descriptor.
std::vector<FileLock> parse_held_locks(std::string_view fdinfo);

// The lock that a thread asks for.
struct LockRequest {
  LockFamily family = LockFamily::kOther;
  bool writes = false;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint64_t inode = 0;
  std::uint64_t start = 0;
  std::uint64_t end = UINT64_MAX;
};
// True if `held` prevents the kernel from granting `request`.
bool conflicts_with(const FileLock& held, const LockRequest& request);

}  // namespace forksight::proc
