#include "proc/file_locks.hpp"

#include "proc/words.hpp"

namespace forksight::proc {
namespace {

// Parses device and inode, such as "fe:00:10953067".
bool parse_file(std::string_view word, FileLock& lock) {
  const std::size_t first = word.find(':');
  const std::size_t second = word.find(':', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return false;
  return parse_number(word.substr(0, first), lock.major, 16) &&
         parse_number(word.substr(first + 1, second - first - 1), lock.minor, 16) &&
         parse_number(word.substr(second + 1), lock.inode);
}

}  // namespace

std::optional<FileLock> parse_file_lock(std::string_view line) {
  FileLock lock;
  if (!next_word(line).ends_with(':')) return std::nullopt;
  std::string_view word = next_word(line);
  for (; word == "->"; word = next_word(line)) lock.waits = true;
  if (word == "FLOCK") lock.family = LockFamily::kFlock;
  if (word == "POSIX" || word == "OFDLCK") lock.family = LockFamily::kPosix;
  lock.is_of_file = word == "FLOCK" || word == "OFDLCK";
  next_word(line);  // ADVISORY
  word = next_word(line);
  lock.writes = word != "READ";
  if (!parse_number(next_word(line), lock.pid) || !parse_file(next_word(line), lock)) return std::nullopt;
  if (!parse_number(next_word(line), lock.start)) return std::nullopt;
  word = next_word(line);
  if (word != "EOF" && !parse_number(word, lock.end)) return std::nullopt;
  return lock;
}

std::vector<FileLock> parse_file_locks(std::string_view text) {
  std::vector<FileLock> locks;
  for_each_line(text, [&](std::string_view line) {
    if (const auto lock = parse_file_lock(line)) locks.push_back(*lock);
  });
  return locks;
}

std::vector<FileLock> parse_held_locks(std::string_view fdinfo) {
  constexpr std::string_view kName = "lock:";
  std::vector<FileLock> locks;
  for_each_line(fdinfo, [&](std::string_view line) {
    if (!line.starts_with(kName)) return;
    if (const auto lock = parse_file_lock(line.substr(kName.size()))) locks.push_back(*lock);
  });
  return locks;
}

bool conflicts_with(const FileLock& held, const LockRequest& request) {
  return !held.waits && held.family == request.family && held.inode == request.inode && held.major == request.major &&
         held.minor == request.minor && (held.writes || request.writes) && held.start <= request.end &&
         request.start <= held.end;
}

}  // namespace forksight::proc
