// Reads a few bytes of another process's memory from /proc/TID/mem. Nothing is stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace forksight::proc {

class ProcessMemory {
 public:
  explicit ProcessMemory(std::int32_t tid);
  ~ProcessMemory();
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  bool is_open() const { return fd_ >= 0; }
  // Reads a little-endian number of `size` bytes, at most 8.
  std::optional<std::uint64_t> read(std::uint64_t address, std::size_t size) const;
  bool read(std::uint64_t address, std::span<std::byte> bytes) const;

 private:
  int fd_;
};

}  // namespace forksight::proc
