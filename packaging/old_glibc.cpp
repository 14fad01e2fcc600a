// Functions that only the portable libforksight-ipc.so contains. That library is linked against a new glibc, but must load
// with glibc 2.28. Later versions of glibc added some functions, and gave others a later version name. This file defines
// these functions, and calls only functions that glibc 2.28 has. The definitions are not exported. They serve the library
// itself, and the libstdc++ and libgcc that are linked into it.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>

extern "C" {

// In this library a thread gives a name only to itself.
int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  if (pthread_equal(thread, pthread_self()) == 0) return ENOTSUP;
  if (std::strlen(name) > 15) return ERANGE;
  return prctl(PR_SET_NAME, name, 0, 0, 0) == 0 ? 0 : errno;
}

// New in glibc 2.30. The instant is translated to the real-time clock, because the condition variable uses that clock. A
// sleep lasts less than two seconds, and can end as a spurious wake-up. So it matters little if somebody sets that clock.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  constexpr long long kSecond = 1'000'000'000;
  const auto to_ns = [](const timespec& at) { return static_cast<long long>(at.tv_sec) * kSecond + at.tv_nsec; };
  timespec now{}, wall{};
  if (clock_gettime(clock, &now) != 0) return EINVAL;
  if (clock_gettime(CLOCK_REALTIME, &wall) != 0) return EINVAL;
  if (until->tv_sec - now.tv_sec > 1) {
    wall.tv_sec += 1;
    const int outcome = pthread_cond_timedwait(condition, mutex, &wall);
    return outcome == ETIMEDOUT ? 0 : outcome;
  }
  const long long left = to_ns(*until) - to_ns(now);
  if (left <= 0) return ETIMEDOUT;
  const long long at = to_ns(wall) + left;
  const timespec translated{static_cast<time_t>(at / kSecond), static_cast<long>(at % kSecond)};
  return pthread_cond_timedwait(condition, mutex, &translated);
}

// Before glibc 2.34, shm_open() and shm_unlink() are in librt.
static int shm_path(const char* name, char (&path)[NAME_MAX + 16]) {
  while (*name == '/') ++name;
  if (*name == '\0' || std::strchr(name, '/') != nullptr || std::strlen(name) > NAME_MAX) {
    errno = EINVAL;
    return -1;
  }
  return std::snprintf(path, sizeof path, "/dev/shm/%s", name);
}
int shm_open(const char* name, int flags, mode_t mode) {
  char path[NAME_MAX + 16];
  if (shm_path(name, path) < 0) return -1;
  return open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode);
}
int shm_unlink(const char* name) {
  char path[NAME_MAX + 16];
  if (shm_path(name, path) < 0) return -1;
  return unlink(path);
}

// Before glibc 2.33, these functions are inline in the headers.
int fstat(int file, struct stat* about) noexcept { return static_cast<int>(syscall(SYS_fstat, file, about)); }
int fstat64(int file, struct stat64* about) noexcept { return static_cast<int>(syscall(SYS_fstat, file, about)); }
int stat(const char* path, struct stat* about) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, about, 0));
}
int lstat(const char* path, struct stat* about) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, about, AT_SYMLINK_NOFOLLOW));
}

// New in glibc 2.32. This variable says whether libstdc++ may count references without atomic instructions. Here the
// variable is always 0, so libstdc++ uses atomic instructions.
char __libc_single_threaded = 0;

// New in glibc 2.36.
std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
  }
  return value;
}

// New in glibc 2.35. libgcc finds the unwind table of a library by this function.
int _dl_find_object(void* address, dl_find_object* found) noexcept {
  struct search {
    ElfW(Addr) address;
    dl_find_object* found;
  } wanted{reinterpret_cast<ElfW(Addr)>(address), found};
  const auto look = [](dl_phdr_info* library, std::size_t, void* what) {
    const auto& in = *static_cast<search*>(what);
    ElfW(Addr) start = ~ElfW(Addr){0}, end = 0;
    void* table = nullptr;
    bool is_here = false;
    for (int i = 0; i < library->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = library->dlpi_phdr[i];
      const ElfW(Addr) first = library->dlpi_addr + part.p_vaddr, last = first + part.p_memsz;
      if (part.p_type == PT_GNU_EH_FRAME) table = reinterpret_cast<void*>(first);
      if (part.p_type != PT_LOAD) continue;
      if (first < start) start = first;
      if (last > end) end = last;
      is_here = is_here || (in.address >= first && in.address < last);
    }
    if (!is_here || table == nullptr) return 0;
    *in.found = {};
    in.found->dlfo_map_start = reinterpret_cast<void*>(start);
    in.found->dlfo_map_end = reinterpret_cast<void*>(end);
    in.found->dlfo_eh_frame = table;
    return 1;
  };
  return dl_iterate_phdr(look, &wanted) == 1 ? 0 : -1;
}

}  // extern "C"
