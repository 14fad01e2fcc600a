// System calls without libc: no errno, no cancellation point, no interposer in between. async-signal-safe and
// fork-child-safe, all of them. Each returns the kernel's answer: a negative value is -errno.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace forksight::sys {

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  long result = 0;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

template <class T>
long word(T* pointer) {
  return static_cast<long>(reinterpret_cast<std::uintptr_t>(pointer));
}

inline std::int32_t getpid() { return static_cast<std::int32_t>(call(SYS_getpid)); }
inline std::int32_t getppid() { return static_cast<std::int32_t>(call(SYS_getppid)); }
inline std::int32_t gettid() { return static_cast<std::int32_t>(call(SYS_gettid)); }
inline void yield() { call(SYS_sched_yield); }

// Is `tid` a thread of this process? Signal 0 is no signal: the kernel only looks the thread up.
inline bool thread_exists(std::int32_t pid, std::int32_t tid) {
  return call(SYS_tgkill, pid, tid, 0) != -3 /* ESRCH */;
}

inline int open(const char* path, int flags, int mode = 0) {
  return static_cast<int>(call(SYS_openat, AT_FDCWD, word(path), flags, mode));
}
inline void close(int fd) { call(SYS_close, fd); }
inline long read(int fd, void* to, std::size_t bytes) { return call(SYS_read, fd, word(to), static_cast<long>(bytes)); }
inline long unlink(const char* path) { return call(SYS_unlinkat, AT_FDCWD, word(path), 0); }
inline long fallocate(int fd, std::uint64_t bytes) { return call(SYS_fallocate, fd, 0, 0, static_cast<long>(bytes)); }

// Null on failure.
inline void* map(std::size_t bytes, int protection, int flags, int fd) {
  const long address = call(SYS_mmap, 0, static_cast<long>(bytes), protection, flags, fd, 0);
  return address < 0 && address > -4096 ? nullptr : reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}
inline void unmap(void* address, std::size_t bytes) { call(SYS_munmap, word(address), static_cast<long>(bytes)); }

// Copies up to `bytes` of this process's own memory; memory that is not mapped shortens the copy and never faults.
// Returns the number of bytes copied. `trusted` allows a plain copy where a filter refuses the system call.
inline std::size_t read_memory(const void* from, void* to, std::size_t bytes, bool trusted = false) {
  iovec local{to, bytes};
  iovec remote{const_cast<void*>(from), bytes};
  // A transfer is cut at the granularity of iovec elements and pages: one element each suffices.
  const long got = call(SYS_process_vm_readv, getpid(), word(&local), 1, word(&remote), 1, 0);
  if (got >= 0) return static_cast<std::size_t>(got);
  if (!trusted || got == -14 /* EFAULT */) return 0;
  __builtin_memcpy(to, from, bytes);
  return bytes;
}

// The same for several pieces at once. Stops at the first that is not mapped; returns the bytes of those before it, and
// perhaps a part of it.
inline std::size_t read_pieces(iovec* local, iovec* remote, std::uint32_t count) {
  const long got = call(SYS_process_vm_readv, getpid(), word(local), count, word(remote), count, 0);
  if (got >= 0) return static_cast<std::size_t>(got);
  if (got == -14 /* EFAULT */) return 0;
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < count; bytes += local[i++].iov_len) {
    __builtin_memcpy(local[i].iov_base, remote[i].iov_base, local[i].iov_len);
  }
  return bytes;
}

}  // namespace forksight::sys
