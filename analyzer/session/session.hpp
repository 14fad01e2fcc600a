// One run: CMD runs under the shim, its process tree is watched, and findings are reported at once and at the end. One
// thread does all this. The thread waits for signals and for the time of the next look. To watch the tree, forksight
// does not stop or interrupt any process. Only to explain a hang does forksight stop threads for a moment, or ask a
// stuck process for Python stacks.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "session/job.hpp"
#include "session/keep.hpp"

namespace forksight {

enum class OnHang { kReport, kKill };
enum class ReportFormat { kText, kJson };

struct RunOptions {
  std::vector<std::string> command;
  std::filesystem::path out;       // empty: forksight-out, or a private folder if forksight-out cannot be made
  std::optional<KeepBounds> keep;  // which runs stay in `out`; none: kDefaultKeep for forksight-out, all elsewhere
  std::string omp = "auto";
  std::string on_orphan = "report";
  std::string cure = "omp";
  bool lock_order = false;
  bool predict = false;
  OnHang on_hang = OnHang::kReport;
  Certainty kill_on = Certainty::kProven;  // the least certainty of a finding on which kKill acts
  std::chrono::milliseconds hang_after{1000};
  std::optional<int> error_exitcode;
  Certainty fail_on = Certainty::kLikely;
  ReportFormat format = ReportFormat::kText;
  // "": standard error. kStandardOutput: forksight's standard output, and the output of CMD goes to standard error.
  std::filesystem::path report;
  bool full = false;  // the text report shows every frame of every stack
  bool quiet = false;
  bool preload = true;            // false: CMD runs without the shim and is only examined from outside
  std::optional<JobOptions> job;  // a time limit; hangs are reported shortly before it
};

inline constexpr char kStandardOutput[] = "-";

// The exit status if CMD was not started because the options cannot be fulfilled.
inline constexpr int kRunRefused = 2;
// The exit status if forksight itself failed. env(1) and timeout(1) use the same exit status.
inline constexpr int kRunFailed = 125;

struct RunEnd {
  int status = 0;     // the exit status
  std::string error;  // why CMD was not started, or how forksight failed later; "" otherwise
};
// Runs the command. If forksight itself fails, a job has been ended; another command goes on alone.
RunEnd run_session(const RunOptions& options);

}  // namespace forksight
