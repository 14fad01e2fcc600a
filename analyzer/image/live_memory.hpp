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
  // `tid`: any thread that has not ended. If the main thread has ended, its file in /proc does not show the memory any
  // more. On failure, returns null and sets errno.
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
