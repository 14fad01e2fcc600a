#include "proc/process_memory.hpp"

#include <unistd.h>

#include "proc/proc_fs.hpp"

namespace forksight::proc {

ProcessMemory::ProcessMemory(std::int32_t tid) : fd_(open_entry(proc_path(tid, "mem"))), dead_(tid) {}

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
  return fd_ >= 0 && dead_.clip(address, bytes.size()) == bytes.size() &&
         ::pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(address)) == static_cast<ssize_t>(bytes.size());
}

std::optional<std::string> ProcessMemory::read_c_string(std::uint64_t address) const {
  std::string text;
  for (char byte = 0; text.size() < 4096; text.push_back(byte)) {
    if (!read(address + text.size(), std::as_writable_bytes(std::span(&byte, 1)))) return std::nullopt;
    if (byte == 0) return text;
  }
  return std::nullopt;
}

}  // namespace forksight::proc
