#include "proc/process_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "proc/proc_fs.hpp"

namespace forksight::proc {

ProcessMemory::ProcessMemory(std::int32_t tid) : fd_(::open(proc_path(tid, "mem").c_str(), O_RDONLY | O_CLOEXEC)) {}

ProcessMemory::~ProcessMemory() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<std::uint64_t> ProcessMemory::read(std::uint64_t address, std::size_t size) const {
  std::uint64_t value = 0;
  if (size > sizeof value) return std::nullopt;
  const bool good = read(address, std::span(reinterpret_cast<std::byte*>(&value), size));
  return good ? std::optional(value) : std::nullopt;
}

bool ProcessMemory::read(std::uint64_t address, std::span<std::byte> bytes) const {
  return fd_ >= 0 &&
         ::pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(address)) == static_cast<ssize_t>(bytes.size());
}

}  // namespace forksight::proc
