// What became of the messages that send_copy() of one handle has accepted. With feed::thread, send_copy() returns
// before the messages are sent.
#pragma once

#include <cstdint>
#include <vector>

#include "forksight/ipc/result.hpp"

namespace forksight::ipc {

// The messages of a handle have the numbers 0, 1, 2, ... in the order in which send_copy() has accepted them.
struct delivery {
  struct lost_range {
    std::uint64_t first = 0, count = 0;
    error why;  // the error of the first message of the range
  };
  std::uint64_t accepted = 0;
  // Accepted messages that were put into the queue. A present or later consumer can receive them, but perhaps none
  // does.
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;               // accepted messages that were not put into the queue, and never will be
  std::uint64_t pending = 0;            // still with the feeder
  std::vector<lost_range> lost_ranges;  // in order; only the first kMostRanges ranges
  static constexpr std::size_t kMostRanges = 1024;
};

}  // namespace forksight::ipc
