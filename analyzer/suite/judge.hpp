// Runs one case and judges what forksight reports about it. First the case runs without forksight, and `why` and `core`
// explain it while it hangs. Then the case runs under `forksight run`, without and with cures.
#pragma once

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "suite/results.hpp"

namespace forksight::suite {

struct JudgeOptions {
  std::filesystem::path forksight;  // the command to be judged
  std::filesystem::path folder;     // must exist; each run gets a folder in it
  std::set<std::string> parts;      // the parts to judge: bare, why, core, observed, runs; empty: all parts
  std::chrono::milliseconds bare_limit{20'000};
  std::chrono::milliseconds run_limit{25'000};
  std::chrono::milliseconds silent_for{3'000};  // how long to watch a run that must report nothing about a hang
};

// Judges a case, and returns the result of each part. The calling process must be a subreaper, must have no other
// children, and must not start other programs meanwhile. No process is left behind.
std::vector<Part> judge(const std::vector<std::string>& command, const Expectations& expected,
                        const JudgeOptions& options);

// Returns the worst state of the parts: kRed is worse than kUnknown, kUnknown than kSkipped, and kSkipped than kGreen.
// kUnknown if there are no parts.
State overall(const std::vector<Part>& parts);

}  // namespace forksight::suite
