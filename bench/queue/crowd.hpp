// Many producers and consumers on lane 0 of one transport: how many messages they move, and what becomes of the others
// when one of them is killed.
#pragma once

#include "transport.hpp"

namespace forksight::bench {

struct Crowd {
  Shape shape;
  unsigned producers, consumers;
  double seconds;      // without a victim: how long it is measured
  std::string victim;  // "producer", "consumer" or empty
  unsigned seed;       // of the instant at which it is killed
};

// Without a victim prints {"value": seconds a message}; with one {"hung": bool, "ms": until all others moved on}.
int run_crowd(Transport& over, const Crowd& crowd);

}  // namespace forksight::bench
