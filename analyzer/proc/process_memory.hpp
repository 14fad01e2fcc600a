// Reads a few bytes of another process's memory from /proc/TID/mem. Nothing is stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proc/dead_ranges.hpp"

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
  // Reads a text of at most 4,095 bytes that ends with a zero.
  std::optional<std::string> read_c_string(std::uint64_t address) const;

 private:
  int fd_;
  DeadRanges dead_;
};

}  // namespace forksight::proc
