#include "command/suite_progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "files/error_output.hpp"
#include "suite/views.hpp"

namespace forksight {
namespace {

std::string describe_eta(double seconds) {
  const long whole = std::lround(std::max(0.0, seconds));
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{}:{:02} min", whole / 60, whole % 60);
}

}  // namespace

void SuiteProgress::finished(const suite::CaseResult& result, const suite::Snapshot& snapshot) {
  const bool is_bad = suite::is_bad(result, is_strict_);
  if ((line_.is_on_terminal() || only_bad_) && !is_bad) return;
  clear();
  const std::string what = suite::first_line(result);
  files::write_error(fmt::format("[{}/{}] {:7} {:5.1f} s  {}{}{}\n", snapshot.done, snapshot.total,
                                 suite::to_string(result.state), result.seconds, result.which->name,
                                 what.empty() ? "" : ": ", what));
}

void SuiteProgress::tick(const suite::Snapshot& snapshot) {
  if (!line_.is_on_terminal()) return;
  std::string line = fmt::format("forksight suite: {} of {}", snapshot.done, snapshot.total);
  if (snapshot.red != 0) line += fmt::format(", {} red", snapshot.red);
  if (snapshot.eta_s >= 0) line += fmt::format(", {} to go", describe_eta(snapshot.eta_s));
  if (!snapshot.running.empty()) line += fmt::format(": {}", fmt::join(snapshot.running, ", "));
  line_.show(line);
}

}  // namespace forksight
