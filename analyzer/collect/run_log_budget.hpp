// Limits what the run logs of one report take together. A stranger may have put many large run logs into the folder of
// a job.
#pragma once

#include <array>
#include <cstddef>

namespace forksight::collect {

// What is counted of a run log.
enum class RunLogCost { kBytes, kItems, kRows, kWaits, kProcesses };
using RunLogCosts = std::array<std::size_t, 5>;  // by RunLogCost

inline std::size_t& of(RunLogCosts& costs, RunLogCost cost) { return costs[static_cast<std::size_t>(cost)]; }
inline std::size_t of(const RunLogCosts& costs, RunLogCost cost) { return costs[static_cast<std::size_t>(cost)]; }

// What a single run log may contain if there is no other.
RunLogCosts largest_run_log();

class RunLogBudget {
 public:
  explicit RunLogBudget(std::size_t files);

  // Returns what the next file may contain: its own share, and half of what no file has as its own share. So hostile
  // files leave room for other files. The last file may contain all that is left.
  RunLogCosts most() const;
  // Called for each file. If the file is not kept, only its bytes count.
  void count(const RunLogCosts& used);

 private:
  std::size_t open_;  // the files that have not been read yet
  RunLogCosts own_;   // the share of each file
  RunLogCosts left_;
};

}  // namespace forksight::collect
