// The memory of a live process. The descriptor refers to the address space that the process had when it was opened.
// After an exec, or when another process has the pid, nothing can be read any more.
#pragma once

#include <cstdint>
#include <memory>

#include "image/memory.hpp"
#include "proc/dead_ranges.hpp"

namespace forksight::image {

class LiveMemory final : public Memory {
 public:
  // `tid`: a thread that has not ended. A main thread that has ended no longer shows the memory. Returns null and sets
  // errno on failure.
  static std::shared_ptr<const LiveMemory> open(std::int32_t tid);
  ~LiveMemory() override;
  LiveMemory(const LiveMemory&) = delete;
  LiveMemory& operator=(const LiveMemory&) = delete;

  std::size_t read(std::uint64_t address, std::span<std::byte> bytes) const override;

 private:
  LiveMemory(int fd, std::int32_t tid) : fd_(fd), dead_(tid) {}

  int fd_;
  proc::DeadRanges dead_;
};

}  // namespace forksight::image
