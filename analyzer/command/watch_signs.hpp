// What `forksight why --watch` prints while it finds no hang: what it watches, and whether those processes work. On a
// terminal this is one line, which each look writes again. If standard error is no terminal, a line is printed at the
// first look, and later once a minute.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "command/status_line.hpp"
#include "inspect/live_tree.hpp"

namespace forksight {

class WatchSigns {
 public:
  // `what`: the processes that the user asked about, such as "process 4242".
  explicit WatchSigns(std::string what);

  // Tells what a look has seen that found no hang.
  void tell(const inspect::LiveTree& tree);
  // Removes the line from the terminal.
  void clear() { line_.clear(); }

 private:
  using Clock = std::chrono::steady_clock;
  // The processor time that each process had used so far, in ticks, by its pid and the time of its start.
  using Used = std::map<std::pair<std::int32_t, std::uint64_t>, std::uint64_t>;

  std::string what_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point due_ = start_;  // when the next line is printed
  Used used_;                       // when the last line was printed
  bool is_first_ = true;
  StatusLine line_;
};

}  // namespace forksight
