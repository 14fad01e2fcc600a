#include "process_watch.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "process.hpp"

namespace forksight::ipc_cuda::detail {

process_watch::process_watch(std::uint32_t pid, std::uint64_t start, std::uint64_t mask)
    : pidfd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {
  if (!pidfd_) {
    was_gone_ = errno == ESRCH;
    return;
  }
  if (has_ended()) return;
  // The process of this descriptor has not ended. So what /proc says now is about the same process.
  const std::uint64_t now = ipc::detail::start_time_of(pid);
  was_gone_ = now != 0 && ((now ^ start) & mask) != 0;
}

bool process_watch::has_ended() const {
  if (was_gone_) return true;
  if (!pidfd_) return false;
  pollfd ask{pidfd_.get(), POLLIN, 0};
  return poll(&ask, 1, 0) == 1 && (ask.revents & POLLIN) != 0;
}

}  // namespace forksight::ipc_cuda::detail
