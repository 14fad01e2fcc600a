// Many producers and consumers on lane 0 of one transport: how many messages they move, and what happens to the others
// when one of them is killed.
#pragma once

#include "transport.hpp"

namespace forksight::bench {

struct Crowd {
  Shape shape;
  unsigned producers, consumers;
  double seconds;      // without a victim: the duration of the measurement
  std::string victim;  // "producer", "consumer" or empty
  unsigned seed;       // for the instant at which it is killed
};

// Without a victim prints {"value": seconds for a message}; with one {"hung": bool, "ms": until all others moved on}.
int run_crowd(Transport& over, const Crowd& crowd);

}  // namespace forksight::bench
