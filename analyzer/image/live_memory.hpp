// The memory of a live process. The descriptor refers to the address space that the process had when the descriptor was
// opened. Once the process has called exec or ended, nothing can be read any more, even if another process has the same
// pid.
#pragma once

#include <cstdint>
#include <memory>

#include "image/memory.hpp"
#include "proc/dead_ranges.hpp"

namespace forksight::image {

class LiveMemory final : public Memory {
 public:
  // `tid`: a thread that has not ended, because the main thread does not show the memory any more once it has ended. On
  // failure, returns null and sets errno.
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
