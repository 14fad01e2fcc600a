#include "member_lock.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <new>

#include "failure.hpp"
#include "layout.hpp"

namespace forksight::ipc::detail {
namespace {

// The offset of the lock byte of the first member. It is beyond the end of any possible segment.
constexpr std::int64_t kLifeAt = std::int64_t{1} << 50;
// The lock of this byte belongs to no member. It is taken only to find out whether the kernel grants such locks.
constexpr std::uint32_t kTrialIndex = ~std::uint32_t{0};

struct flock byte_of(std::uint32_t index, short type) {
  struct flock byte {};
  byte.l_type = type;
  byte.l_whence = SEEK_SET;
  byte.l_start = kLifeAt + index;
  byte.l_len = 1;
  return byte;
}

// This mutex is held as long as a member_lock exists. fork() waits for the mutex, so no child gets the open file
// description of a member_lock. The mutex is recursive, because a signal handler of the same thread may fork.
std::recursive_mutex& fork_mutex() {
  // never destroyed, because the handlers outlive all static objects
  static std::recursive_mutex* const one = new std::recursive_mutex;
  return *one;
}

void register_fork_handlers() {
  // The child constructs the mutex again. The child cannot unlock it, because a recursive mutex records the owner's
  // thread id, and the child's thread has another id.
  static const int once = pthread_atfork([] { fork_mutex().lock(); }, [] { fork_mutex().unlock(); },
                                         [] { new (&fork_mutex()) std::recursive_mutex; });
  (void)once;
}

}  // namespace

bool lock_shared(int fd) {
  for (int tries = 0; flock(fd, LOCK_SH | LOCK_NB) != 0; ++tries) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || tries == 200) return false;
    const timespec pause{0, 5'000'000};
    nanosleep(&pause, nullptr);
  }
  return true;
}

member_lock_view::member_lock_view(int fd) {
  struct stat about {};
  if (fd < 0 || fstat(fd, &about) != 0) return;
  fd_ = fd;
  device_ = about.st_dev;
  inode_ = about.st_ino;
}

bool member_lock_view::can_tell() const {
  struct stat about {};
  return fd_ >= 0 && fstat(fd_, &about) == 0 && about.st_dev == device_ && about.st_ino == inode_;
}

member_state member_lock_view::of(std::uint32_t index) const {
  struct flock byte = byte_of(index, F_WRLCK);
  if (fcntl(fd_, F_OFD_GETLK, &byte) != 0) return member_state::unknown;
  return byte.l_type == F_UNLCK ? member_state::dead : member_state::alive;
}

member_lock::member_lock() {
  register_fork_handlers();
  fork_mutex().lock();
}

member_lock::~member_lock() {
  file_.reset();
  fork_mutex().unlock();
}

result<void> member_lock::open(int segment, const std::string& name) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", segment);
  file_ = descriptor(::open(path.data(), O_RDWR | O_CLOEXEC));
  const int why = errno;
  if (!file_ && !name.empty()) file_ = descriptor(shm_open(name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0));
  if (!file_) {
    // A lack of descriptors or memory may be temporary, so the call fails and can be repeated. If it went on without
    // the lock, no process would ever notice the death of this one.
    if (why == EMFILE || why == ENFILE || why == ENOMEM) return failed_call(why, "queue: opening its file again");
    return {};
  }
  struct stat mine {
  }, segments{};
  if (fstat(file_.get(), &mine) != 0 || fstat(segment, &segments) != 0 || mine.st_dev != segments.st_dev ||
      mine.st_ino != segments.st_ino) {
    file_.reset();  // /proc shows another pid namespace, in which another process has the pid of this one
    return {};
  }
  // Some kernels have no open file description locks, for example gVisor (EINVAL). A seccomp filter may refuse them
  // (EPERM).
  const auto trial = take(kTrialIndex);
  if (!trial && trial.error().sys_errno == ENOLCK) return trial.error();
  if (!trial) {
    file_.reset();
    return {};
  }
  if (trial.value()) give_back(kTrialIndex);
  if (!name.empty() && !lock_shared(file_.get())) return failed_call(errno, "queue: flock of %s", name.c_str());
  return {};
}

result<bool> member_lock::take(std::uint32_t index) const {
  struct flock byte = byte_of(index, F_WRLCK);
  if (fcntl(file_.get(), F_OFD_SETLK, &byte) == 0) return true;
  if (errno == EAGAIN) return false;
  return failed_call(errno, "queue: taking the lock that shows other processes that this one lives");
}

void member_lock::give_back(std::uint32_t index) const {
  struct flock byte = byte_of(index, F_UNLCK);
  (void)fcntl(file_.get(), F_OFD_SETLK, &byte);
}

result<void*> member_lock::keep() {
  if (!file_) return nullptr;
  // The page is private and has no access rights, so the file cannot be read or written through it.
  void* const page = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE, file_.get(), 0);
  if (page == MAP_FAILED) return failed_call(errno, "queue: mmap of the page that holds its lock");
  if (madvise(page, kPage, MADV_DONTFORK) != 0) {
    const int why = errno;
    munmap(page, kPage);
    return failed_call(why, "queue: madvise of the page that holds its lock");
  }
  file_.reset();
  return page;
}

void member_lock::end(void* page) {
  if (page != nullptr) munmap(page, kPage);
}

}  // namespace forksight::ipc::detail
