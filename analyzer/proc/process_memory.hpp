// A few bytes of another process' memory, by /proc/TID/mem: a read, nothing is stopped.
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

  // A little-endian number of at most 8 bytes.
  std::optional<std::uint64_t> read(std::uint64_t address, std::size_t size) const;
  bool read(std::uint64_t address, std::span<std::byte> bytes) const;

 private:
  int fd_;
};

}  // namespace forksight::proc
