// Checks a queue after all members except one survivor have died and have been recovered. Every buffer must be free or
// contain a message. Every slot must be usable. Only the survivor's entry may be taken. The remaining messages must be
// complete.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forksight/ipc/queue.hpp"
#include "ring.hpp"
#include "segment.hpp"

namespace forksight::ipc::test {

// A second, read-only mapping of a queue. It gives access to the words of the segment.
class words {
 public:
  explicit words(const queue& of);
  const detail::ring& view() const { return memory_.view(); }
  // Returns the bytes of the segment, without the payload.
  const char* bytes() const { return reinterpret_cast<const char*>(memory_.view().head); }
  std::size_t size() const { return memory_.shape().payload_at; }

 private:
  detail::segment memory_;
};

// Sends a message that contains only a number.
bool send_number(queue& to, std::uint32_t number, deadline until = deadline::now());

// Recovers members that have died, until `dead` members are recovered or 10 s have passed. Returns how many were. A
// single recover() may come too early: while another process reads the memory of a dead one through /proc, as ps does
// for the command line, the kernel keeps the dead one's address space, and with it the lock of the member.
std::size_t recover_dead(queue& survivor, std::size_t dead = 1);

// Waits until `dead` members look dead, and recovers none of them. After that, a single recover() must recover all of
// them. Returns an empty text, or says which members still look alive after 10 s.
std::string wait_for_deaths(const queue& survivor, std::size_t dead);

// Waits until no process has the named queue open. gc() removes the queue only then. After 10 s, or on failure, returns
// false.
bool wait_until_unused(const std::string& name);

// check_survivor() adds this to the number of a parked message.
constexpr std::uint32_t kParked = 100;

struct leftovers {
  // First the numbers of the received messages, in order. Then the numbers of the parked messages, each + kParked.
  std::vector<std::uint32_t> numbers;
  std::string broken;  // the first invariant that does not hold; empty: all hold
};
// Waits until the other members look dead. Recovers them with one call, receives all remaining messages, lends every
// buffer once, and then fills and empties the queue twice.
leftovers check_survivor(queue& survivor);

}  // namespace forksight::ipc::test
