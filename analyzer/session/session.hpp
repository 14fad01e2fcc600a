// One run: CMD under the shim, its tree watched, what is found said at once and at the end. One thread, which waits
// for signals and for the time of the next look; nothing of the tree is ever stopped or interrupted.
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
  std::filesystem::path out;  // empty: forksight-out, or a private folder where that cannot be made
  std::optional<KeepBounds> keep;  // of the runs in `out`; none: kDefaultKeep for forksight-out, all elsewhere
  std::string omp = "auto";
  std::string on_orphan = "report";
  std::string cure = "omp";
  bool lock_order = false;
  bool predict = false;
  OnHang on_hang = OnHang::kReport;
  Certainty kill_on = Certainty::kProven;  // the least that kKill acts on
  std::chrono::milliseconds hang_after{1000};
  std::optional<int> error_exitcode;
  Certainty fail_on = Certainty::kLikely;
  ReportFormat format = ReportFormat::kText;
  // "": standard error; kStandardOutput: that of forksight, and CMD's goes to standard error.
  std::filesystem::path report;
  bool full = false;  // text: every frame of every stack
  bool quiet = false;
  bool preload = true;            // false: CMD runs without the shim, and is only looked at from outside
  std::optional<JobOptions> job;  // a time limit, shortly before which hangs are told
};

inline constexpr char kStandardOutput[] = "-";

// CMD was not started: what the options ask for cannot be had, ...
inline constexpr int kRunRefused = 2;
// ... or forksight itself failed, as env(1) and timeout(1) have it.
inline constexpr int kRunFailed = 125;

struct RunEnd {
  int status = 0;     // what to exit with
  std::string error;  // why CMD was not started, "" if it was
};
RunEnd run_session(const RunOptions& options);

}  // namespace forksight
