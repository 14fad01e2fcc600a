// Many producers and consumers use one direction of one transport. Measures how many messages they move, or whether the
// others continue when one of them is killed.
#pragma once

#include "transport.hpp"

namespace forksight::bench {

struct Crowd {
  Shape shape;
  unsigned producers, consumers;
  double seconds;      // without a victim: the duration of the measurement
  std::string victim;  // "producer", "consumer" or empty
  unsigned seed;       // determines the random time of the kill
};

// Without a victim, prints {"value": seconds for a message}. With a victim, prints {"hung": bool, "ms": milliseconds
// from the kill until all others have continued}. Returns the exit status of the program.
int run_crowd(Transport& over, const Crowd& crowd);

}  // namespace forksight::bench
