// The memory in a core file. Memory that was not dumped, because a file has it, comes from that file.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "image/core_file.hpp"
#include "image/memory.hpp"

namespace forksight::image {

class CoreMemory final : public Memory {
 public:
  explicit CoreMemory(CoreFile file) : file_(std::move(file)) {}
  ~CoreMemory() override;
  CoreMemory(const CoreMemory&) = delete;
  CoreMemory& operator=(const CoreMemory&) = delete;

  std::size_t read(std::uint64_t address, std::span<std::byte> bytes) const override;

  const CoreFile& file() const { return file_; }
  // From now on the pages from `start` up to `end` that the core leaves out are those at `offset` of the file at
  // `path`, which must be the one that was mapped. Not while others read.
  void add_file(std::uint64_t start, std::uint64_t end, std::uint64_t offset, const std::string& path);

 private:
  struct Backing {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;
    int fd = -1;
  };
  // Some bytes from `address` on; 0 if there are none.
  std::size_t read_piece(std::uint64_t address, std::span<std::byte> bytes) const;

  CoreFile file_;
  std::vector<Backing> backings_;                // ascending
  std::unordered_map<std::string, int> opened_;  // by path; -1: cannot be read
};

}  // namespace forksight::image
