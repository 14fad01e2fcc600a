// Progress of the suite, on standard error: one line that changes on a terminal, else one line for each case.
#pragma once

#include <chrono>
#include <string>

#include "suite/runner.hpp"

namespace forksight {

class SuiteProgress {
 public:
  SuiteProgress(bool only_bad, bool is_strict);
  ~SuiteProgress() { clear(); }
  SuiteProgress(const SuiteProgress&) = delete;
  SuiteProgress& operator=(const SuiteProgress&) = delete;

  void finished(const suite::CaseResult& result, const suite::Snapshot& snapshot);
  void tick(const suite::Snapshot& snapshot);
  void clear();

 private:
  bool only_bad_;
  bool is_strict_;
  bool is_terminal_;
  bool is_shown_ = false;
};

}  // namespace forksight
