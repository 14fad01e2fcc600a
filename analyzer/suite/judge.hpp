// Runs one case and judges what is said of it: bare, hung and asked about, under observation, and with each cure.
#pragma once

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "suite/results.hpp"

namespace forksight::suite {

struct JudgeOptions {
  std::filesystem::path forksight;  // the command that is judged
  std::filesystem::path folder;     // exists; each run has a folder of its own in it
  std::set<std::string> parts;      // only these of bare, why, core, observed, runs; empty: all of them
  std::chrono::milliseconds bare_limit{20'000};
  std::chrono::milliseconds run_limit{25'000};
  std::chrono::milliseconds silent_for{3'000};  // a run that is to say nothing of a hang has so long to say something
};

// To be called in a process that is a reaper, has no other children, and runs nothing else. Nothing is left behind.
std::vector<Part> judge(const std::vector<std::string>& command, const Expectations& expected,
                        const JudgeOptions& options);

// kRed before kSkipped before kGreen.
State overall(const std::vector<Part>& parts);

}  // namespace forksight::suite
