// Reads small texts of /proc line by line. fork-child-safe and async-signal-safe: it uses system calls and a few
// hundred bytes of stack, and closes the descriptor before it returns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "guest/sys.hpp"

namespace forksight {

inline constexpr std::size_t kLineBytes = 96;  // the rest of longer lines is dropped

// A path such as "/proc/self/fdinfo/7" or "/proc/4240/io".
class ProcPath {
 public:
  // `pid` 0: this process
  ProcPath(std::int32_t pid, const char* what, std::int32_t number = -1) {
    add("/proc/");
    pid == 0 ? add("self") : add(pid);
    add("/");
    add(what);
    if (number >= 0) add(number);
  }
  const char* text() const { return text_; }

 private:
  void add(const char* words) {
    while (*words != '\0' && at_ + 1 < sizeof text_) text_[at_++] = *words++;
    text_[at_] = '\0';
  }
  void add(std::int32_t number) {
    char digits[12];
    char* first = digits + sizeof digits - 1;
    *first = '\0';
    for (auto rest = static_cast<std::uint32_t>(number); first == digits + sizeof digits - 1 || rest != 0; rest /= 10)
      *--first = static_cast<char>('0' + rest % 10);
    add(first);
  }

  char text_[48] = {};
  std::size_t at_ = 0;
};

// Calls tell(line) for each line, until `tell` returns false. The line ends with '\0' instead of a newline. Returns
// false if the file could not be read.
template <class Tell>
__attribute__((noinline)) bool for_each_line(const char* path, Tell tell) {
  char piece[128];
  char line[kLineBytes];
  std::size_t filled = 0;
  const int fd = sys::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool goes_on = true;
  long got = 0;
  while (goes_on && (got = sys::read(fd, piece, sizeof piece)) > 0) {
    for (long i = 0; i < got && goes_on; ++i) {
      if (piece[i] != '\n') {
        if (filled + 1 < sizeof line) line[filled++] = piece[i];
        continue;
      }
      line[filled] = '\0';
      filled = 0;
      goes_on = tell(static_cast<const char*>(line));
    }
  }
  sys::close(fd);
  return got >= 0;
}

// The rest of `line` after `prefix`; null if `line` does not begin with `prefix`.
inline const char* after(const char* line, const char* prefix) {
  while (*prefix != '\0') {
    if (*line++ != *prefix++) return nullptr;
  }
  return line;
}

// Reads a decimal number, and moves `text` behind it. Returns 0 if there are no digits.
inline std::uint64_t read_number(const char*& text) {
  std::uint64_t number = 0;
  while (*text >= '0' && *text <= '9') number = number * 10 + static_cast<std::uint64_t>(*text++ - '0');
  return number;
}

}  // namespace forksight
