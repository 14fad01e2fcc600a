// The memory of a live process. The descriptor stands for the address space that it had when it was opened: after an
// exec, or when the pid belongs to somebody else, nothing can be read any more.
#pragma once

#include <cstdint>
#include <memory>

#include "image/memory.hpp"

namespace forksight::image {

class LiveMemory final : public Memory {
 public:
  // By a thread that has not ended: a first thread that has has no memory any more. Null with errno.
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
