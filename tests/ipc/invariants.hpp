// What must hold of a queue once everybody but one survivor is dead and recovered: buffers are conserved, no slot is
// stuck, no entry but the survivor's is taken, and the messages that are left are whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forksight/ipc/queue.hpp"
#include "ring.hpp"
#include "segment.hpp"

namespace forksight::ipc::test {

// The words of a queue, mapped a second time.
class words {
 public:
  explicit words(const queue& of);
  const detail::ring& view() const { return memory_.view(); }
  // All but the payload, as bytes.
  const char* bytes() const { return reinterpret_cast<const char*>(memory_.view().head); }
  std::size_t size() const { return memory_.shape().payload_at; }

 private:
  detail::segment memory_;
};

// A message that is told by a number.
bool send_number(queue& to, std::uint32_t number, deadline until = deadline::now());

// Of a message that is parked: what its number is counted as.
constexpr std::uint32_t kParked = 100;

struct leftovers {
  std::vector<std::uint32_t> numbers;  // in the order in which they came, then those that were parked, plus kParked
  std::string broken;                  // the first invariant that does not hold; empty: all do
};
// Recovers, takes all that is left, and then fills and empties the queue twice.
leftovers check_survivor(queue& survivor);

}  // namespace forksight::ipc::test
