#include "image/live_memory.hpp"

#include <unistd.h>

#include <cerrno>
#include <limits>

#include "proc/process_memory.hpp"

namespace forksight::image {

// Uses /proc/PID/mem, because process_vm_readv() finds the process by its pid. If the process ended and another process
// got its pid, process_vm_readv() would read the memory of the other process.
std::shared_ptr<const LiveMemory> LiveMemory::open(std::int32_t tid) {
  const int fd = proc::open_memory(tid);
  if (fd < 0) return nullptr;
  return std::shared_ptr<const LiveMemory>(new LiveMemory(fd, tid));
}

LiveMemory::~LiveMemory() { ::close(fd_); }

std::size_t LiveMemory::read(std::uint64_t address, std::span<std::byte> bytes) const {
  bytes = bytes.first(dead_.clip(address, bytes.size()));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::uint64_t at = address + done;
    if (at < address || at > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) break;
    const ssize_t got = ::pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace forksight::image
