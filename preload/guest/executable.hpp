#pragma once

#include <sys/auxv.h>

#include "guest/sys.hpp"

namespace forksight {

// Writes the path of the program, at most `room` bytes and no NUL. Returns the length of the path. The function reads
// /proc/thread-self/exe, because /proc/self/exe names no file after the first thread has ended. If the read fails, for
// example because a filter forbids it, the result is the path that was given to execve(), if that path is absolute.
// fork-child-safe.
inline std::size_t read_executable_path(char* to, std::size_t room) {
  const long got =
      sys::call(SYS_readlinkat, AT_FDCWD, sys::word("/proc/thread-self/exe"), sys::word(to), static_cast<long>(room));
  if (got >= 0) return static_cast<std::size_t>(got);
  const auto* const given = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (given == nullptr || *given != '/') return 0;
  std::size_t length = 0;
  while (length < room && given[length] != '\0') {
    to[length] = given[length];
    ++length;
  }
  return length;
}

}  // namespace forksight
