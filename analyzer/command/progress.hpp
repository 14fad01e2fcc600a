// Shows the progress of work that takes longer than a second, as one line on a terminal. Prints nothing if standard
// error is no terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace forksight {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::size_t done, std::size_t total);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  Clock::time_point due_;  // the time at which the line is written next
  bool is_terminal_ = false;
  bool is_shown_ = false;
};

}  // namespace forksight
