// System calls without libc: no errno, no cancellation point, no interposer. All of them are async-signal-safe and
// fork-child-safe. Each returns the kernel's answer: a negative value is -errno. If a seccomp filter might kill the
// process for a call, call() does not make it, and returns -EPERM (confinement.hpp).
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

#include "guest/confinement.hpp"

namespace forksight::sys {

// Makes the call even if a seccomp filter may kill the process for it. For the code that finds out for which calls the
// filter kills.
inline long raw_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
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

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  if (!is_permitted(number)) return -1;  // EPERM
  return raw_call(number, a, b, c, d, e, f);
}

template <class T>
long word(T* pointer) {
  return static_cast<long>(reinterpret_cast<std::uintptr_t>(pointer));
}

// If a filter forbids getpid(), the function returns the process id that the shim stored last. If a filter forbids
// gettid(), the function returns the thread id that libc stores (confinement.hpp).
inline std::int32_t getpid() {
  const long pid = call(SYS_getpid);
  return pid > 0 ? static_cast<std::int32_t>(pid) : pid_when_confined();
}
inline std::int32_t gettid() {
  const long tid = call(SYS_gettid);
  if (tid > 0) return static_cast<std::int32_t>(tid);
  return g_read_tid == nullptr ? 0 : g_read_tid();
}
inline std::int32_t getppid() { return static_cast<std::int32_t>(call(SYS_getppid)); }
inline void yield() { call(SYS_sched_yield); }

// True if `tid` is a thread of the process `pid`, or if the kernel does not say. The call with signal 0 sends no
// signal: the kernel only looks up the thread.
inline bool thread_exists(std::int32_t pid, std::int32_t tid) {
  return call(SYS_tgkill, pid, tid, 0) != -3 /* ESRCH */;
}

inline int open(const char* path, int flags, int mode = 0) {
  return static_cast<int>(call(SYS_openat, AT_FDCWD, word(path), flags, mode));
}
inline void close(int fd) { call(SYS_close, fd); }
// The kernel may return fewer bytes than a file still has.
inline long read(int fd, void* to, std::size_t bytes) { return call(SYS_read, fd, word(to), static_cast<long>(bytes)); }

struct Text {
  std::size_t bytes;
  bool is_whole;  // the file ends after these bytes, or as many bytes as wanted were read
};

// Reads until the file ends, `bytes` bytes are read, or a call fails.
inline Text read_all(int fd, void* to, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const long got = read(fd, static_cast<char*>(to) + done, bytes - done);
    if (got <= 0) return {done, got == 0};
    done += static_cast<std::size_t>(got);
  }
  return {done, true};
}
inline long unlink(const char* path) { return call(SYS_unlinkat, AT_FDCWD, word(path), 0); }
inline long fallocate(int fd, std::uint64_t bytes) { return call(SYS_fallocate, fd, 0, 0, static_cast<long>(bytes)); }

// Null on failure.
inline void* map(std::size_t bytes, int protection, int flags, int fd) {
  const long address = call(SYS_mmap, 0, static_cast<long>(bytes), protection, flags, fd, 0);
  return address < 0 && address > -4096 ? nullptr : reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}
inline void unmap(void* address, std::size_t bytes) { call(SYS_munmap, word(address), static_cast<long>(bytes)); }

}  // namespace forksight::sys
