// Splits a list into batches. Batches bound how much is read, opened or kept at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace forksight::proc {

// Each batch but the last has `size` elements. `size` is at least 1.
template <class T>
std::vector<std::span<T>> in_batches(std::span<T> all, std::size_t size) {
  std::vector<std::span<T>> batches;
  for (; !all.empty(); all = all.subspan(batches.back().size()))
    batches.push_back(all.first(std::min(size, all.size())));
  return batches;
}

// The number of processes that are read together. A small number keeps the time short between the first and the last
// text that is read about a process.
inline constexpr std::size_t kReadTogether = 64;

}  // namespace forksight::proc
