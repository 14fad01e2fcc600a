// Which process holds the file lock that a thread waits for, according to /proc/locks. Pure, except for reading these
// texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace forksight::proc {

// kPosix: locks of a process and of an open file, which exclude each other
enum class LockFamily { kFlock, kPosix, kOther };

struct FileLock {
  LockFamily family = LockFamily::kOther;
  bool waits = false;       // it is not held but waited for
  bool is_of_file = false;  // F_OFD_SETLK, flock: it belongs to the open file and to every process that has it
  bool writes = false;
  std::int32_t pid = 0;  // the process that took it; -1 for F_OFD_SETLK
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint64_t inode = 0;
  std::uint64_t start = 0;
  std::uint64_t end = UINT64_MAX;
};

// A line of /proc/locks, or the value of a "lock:" line in fdinfo.
std::optional<FileLock> parse_file_lock(std::string_view line);
// All lines that are understood.
std::vector<FileLock> parse_file_locks(std::string_view text);
// The "lock:" lines in the fdinfo of a descriptor: the locks of that open file, or of its process, on the file.
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
// `held` prevents that the lock is granted.
bool is_in_the_way(const FileLock& held, const LockRequest& request);

}  // namespace forksight::proc
