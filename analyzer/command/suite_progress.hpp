// Shows the progress of the suite on standard error. On a terminal, one line changes while cases run, and each bad case
// gets a line of its own. If standard error is no terminal, each case gets a line. With `only_bad`, only a bad case
// gets a line.
#pragma once

#include <chrono>
#include <string>

#include "command/status_line.hpp"
#include "suite/runner.hpp"

namespace forksight {

class SuiteProgress {
 public:
  SuiteProgress(bool only_bad, bool is_strict) : only_bad_(only_bad), is_strict_(is_strict) {}

  void finished(const suite::CaseResult& result, const suite::Snapshot& snapshot);
  void tick(const suite::Snapshot& snapshot);
  void clear() { line_.clear(); }

 private:
  bool only_bad_;
  bool is_strict_;
  StatusLine line_;
};

}  // namespace forksight
