// Checks a queue after all members but one survivor have died and were recovered. Every buffer is free or contains a
// message. No slot is stuck. Only the survivor's entry is taken. The messages that are left are whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forksight/ipc/queue.hpp"
#include "ring.hpp"
#include "segment.hpp"

namespace forksight::ipc::test {

// The words of a queue, in a second, read-only mapping.
class words {
 public:
  explicit words(const queue& of);
  const detail::ring& view() const { return memory_.view(); }
  // The bytes of the segment, without the payload.
  const char* bytes() const { return reinterpret_cast<const char*>(memory_.view().head); }
  std::size_t size() const { return memory_.shape().payload_at; }

 private:
  detail::segment memory_;
};

// Sends a message that contains only a number.
bool send_number(queue& to, std::uint32_t number, deadline until = deadline::now());

// check_survivor() adds this to the number of a parked message.
constexpr std::uint32_t kParked = 100;

struct leftovers {
  std::vector<std::uint32_t> numbers;  // of the messages in the order in which they came; then parked ones + kParked
  std::string broken;                  // the first invariant that does not hold; empty: all do
};
// Recovers, takes all messages that are left, lends every buffer once, and then fills and empties the queue twice.
leftovers check_survivor(queue& survivor);

}  // namespace forksight::ipc::test
