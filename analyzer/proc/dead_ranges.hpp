// Finds the parts of a process's memory whose bytes come from a file system that does not answer. Reading such a part
// may block for ever (files/dead_places.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace forksight::proc {

class DeadRanges {
 public:
  // Reads the mappings of the thread if some file system is known not to answer.
  explicit DeadRanges(std::int32_t tid);

  // Returns how many of the `size` bytes at `address` come before the first byte whose file system does not answer.
  std::size_t clip(std::uint64_t address, std::size_t size) const;

 private:
  struct Range {
    std::uint64_t start;
    std::uint64_t end;
  };
  std::vector<Range> ranges_;
};

}  // namespace forksight::proc
