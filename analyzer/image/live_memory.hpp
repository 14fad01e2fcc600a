// The memory of a live process. The descriptor stands for the address space at the time when it was opened: after an
// exec, or if the pid belongs to another process, nothing can be read any more.
#pragma once

#include <cstdint>
#include <memory>

#include "image/memory.hpp"

namespace forksight::image {

class LiveMemory final : public Memory {
 public:
  // `tid`: a living thread, because a first thread that has ended has no memory any more. Returns null and sets errno
  // on failure.
  static std::shared_ptr<const LiveMemory> open(std::int32_t tid);
  ~LiveMemory() override;
  LiveMemory(const LiveMemory&) = delete;
  LiveMemory& operator=(const LiveMemory&) = delete;

  std::size_t read(std::uint64_t address, std::span<std::byte> bytes) const override;

 private:
  explicit LiveMemory(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace forksight::image
