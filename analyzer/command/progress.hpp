// Shows the progress of work that takes longer than a second, as one line on a terminal. Prints nothing if standard
// error is no terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "command/status_line.hpp"

namespace forksight {

class Progress {
 public:
  explicit Progress(std::string what);

  void show(std::size_t done, std::size_t total);
  void clear() { line_.clear(); }

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  Clock::time_point due_;  // the time at which the line is written next
  StatusLine line_;
};

}  // namespace forksight
