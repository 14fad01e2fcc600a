// Runs cases side by side, each in a separate worker process.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "result.hpp"
#include "suite/judge.hpp"
#include "suite/select.hpp"

namespace forksight::suite {

struct RunnerOptions {
  JudgeOptions judge;          // the runner replaces `folder`
  std::filesystem::path keep;  // in this folder each case gets a folder with all its files; "": nothing is kept
  int jobs = 1;
  std::chrono::seconds case_limit{150};
};

struct Snapshot {
  std::size_t done = 0;
  std::size_t total = 0;
  int red = 0;
  std::vector<std::string> running;
  double eta_s = 0;  // negative: not known yet
};

struct RunnerEvents {
  std::function<void(const CaseResult&, const Snapshot&)> finished;
  std::function<void(const Snapshot&)> tick;  // called several times a second
};

struct RunnerResult {
  std::vector<CaseResult> results;  // in the order of the entries
  bool is_stopped = false;          // stopped by SIGINT, SIGTERM or SIGHUP; results that are missing are kUnknown
  double seconds = 0;
};

// Returns the number of processors that this process may use.
int count_cores();

// The calling process becomes a subreaper, and must have no other children and no threads. Returns an error if the
// folder for the files of the runs cannot be made.
Result<RunnerResult> run_cases(const std::vector<Entry>& entries, const RunnerOptions& options,
                               const RunnerEvents& events);

}  // namespace forksight::suite
