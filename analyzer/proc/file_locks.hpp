// Who holds the file lock that a thread waits for, by /proc/locks. Pure, but for reading those texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace forksight::proc {

enum class LockFamily { kFlock, kPosix, kOther };  // kPosix: of a process or of an open file, which exclude each other

struct FileLock {
  LockFamily family = LockFamily::kOther;
  bool waits = false;       // does not hold it
  bool is_of_file = false;  // F_OFD_SETLK, flock: held by an open file, whoever has that
  bool writes = false;
  std::int32_t pid = 0;  // who took it; -1 of F_OFD_SETLK
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint64_t inode = 0;
  std::uint64_t start = 0;
  std::uint64_t end = UINT64_MAX;
};

// A line of /proc/locks, or the value of a "lock:" line in fdinfo.
std::optional<FileLock> parse_file_lock(std::string_view line);
// All lines that can be understood.
std::vector<FileLock> parse_file_locks(std::string_view text);
// The "lock:" lines of the fdinfo of a descriptor: what that open file, or its process, holds of the file.
std::vector<FileLock> parse_held_locks(std::string_view fdinfo);

// What a thread asks for.
struct LockRequest {
  LockFamily family = LockFamily::kOther;
  bool writes = false;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint64_t inode = 0;
  std::uint64_t start = 0;
  std::uint64_t end = UINT64_MAX;
};
// `held` keeps it from being granted.
bool is_in_the_way(const FileLock& held, const LockRequest& request);

}  // namespace forksight::proc
