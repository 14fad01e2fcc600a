// errno as it was, whatever is called until the end of the scope.
#pragma once

#include <errno.h>

#include <cstddef>

namespace forksight {

// Where errno is, from the thread pointer on: the same in all threads, for libc has it in its initial block of
// thread-local storage. 0: not known yet. A child that calls __errno_location() is the first to need that page of
// libc's text.
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
