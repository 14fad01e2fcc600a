// The command line of bench_queue.
#pragma once

#include <string>

#include "transport.hpp"

namespace forksight::bench {

struct Options {
  std::string transport, measure = "round_trip";
  Shape shape;
  bool touches = false;
  int cpu[2] = {-1, -1};
  double seconds = 0.3;
  unsigned producers = 0, consumers = 0;
  std::string victim;
  unsigned seed = 1;
};

// Ends the program with an error message if the command line is invalid.
Options parse(int argc, char** argv);

}  // namespace forksight::bench
