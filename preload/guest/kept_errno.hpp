// KeptErrno restores errno at the end of its scope.
#pragma once

#include <errno.h>

#include <cstddef>

namespace forksight {

// The offset of errno from the thread pointer. It is the same in all threads, because libc has errno in its initial
// block of thread-local storage. 0: not known yet. With the offset, a forked child need not call __errno_location(),
// which is on a page of libc that the child would have to map only for this call.
inline constinit std::ptrdiff_t g_errno_offset = 0;
inline void find_errno() {
  g_errno_offset = reinterpret_cast<char*>(&errno) - static_cast<char*>(__builtin_thread_pointer());
}
inline int& errno_here() {
  if (__builtin_expect(g_errno_offset == 0, 0)) return errno;
  return *reinterpret_cast<int*>(static_cast<char*>(__builtin_thread_pointer()) + g_errno_offset);
}

class KeptErrno {
 public:
  KeptErrno() : value_(errno_here()) {}
  ~KeptErrno() { errno_here() = value_; }
  int value() const { return value_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  int value_;
};

}  // namespace forksight
