// The memory in a core file. Pages that were not dumped, because a file contains them, are read from that file.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "files/open_file.hpp"
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
  // After this call, pages between `start` and `end` that the core leaves out are read from the file at `path`, from
  // `offset` on. The file must be the one that was mapped. `owner`: see files::open_for(). No other thread may read
  // meanwhile.
  void add_file(std::uint64_t start, std::uint64_t end, std::uint64_t offset, const files::Owner& owner,
                const std::string& path);

 private:
  struct Backing {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;
    int fd = -1;
  };
  // Reads from `address` on, but only within one segment of the core or one file. Returns the number of bytes read; 0:
  // nothing can be read at `address`.
  std::size_t read_piece(std::uint64_t address, std::span<std::byte> bytes) const;

  CoreFile file_;
  std::vector<Backing> backings_;                // ascending
  std::unordered_map<std::string, int> opened_;  // by path; -1: cannot be read
};

}  // namespace forksight::image
