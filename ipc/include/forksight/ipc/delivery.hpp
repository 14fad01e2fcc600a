// What became of the messages that send_copy() of one handle has accepted. With feed::thread, send_copy() returns
// before they are sent.
#pragma once

#include <cstdint>
#include <vector>

#include "forksight/ipc/result.hpp"

namespace forksight::ipc {

// The messages of a handle have the numbers 0, 1, 2, ... in the order in which send_copy() has accepted them.
struct delivery {
  struct lost_range {
    std::uint64_t first = 0, count = 0;
    error why;  // of the first of them
  };
  std::uint64_t accepted = 0;
  // Of these: taken into the queue. A consumer that is there, or comes, can receive it; none has to.
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;               // did not get into the queue, and will not
  std::uint64_t pending = 0;            // still with the feeder
  std::vector<lost_range> lost_ranges;  // in order; all of them, if they are kMostRanges at most
  static constexpr std::size_t kMostRanges = 1024;
};

}  // namespace forksight::ipc
