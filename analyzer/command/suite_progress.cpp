#include "command/suite_progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "suite/views.hpp"

namespace forksight {
namespace {

std::size_t terminal_width() {
  winsize size = {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

std::string describe_eta(double seconds) {
  const long whole = std::lround(std::max(0.0, seconds));
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{}:{:02} min", whole / 60, whole % 60);
}

}  // namespace

SuiteProgress::SuiteProgress(bool only_bad, bool is_strict)
    : only_bad_(only_bad), is_strict_(is_strict), is_terminal_(::isatty(STDERR_FILENO) == 1) {}

void SuiteProgress::finished(const suite::CaseResult& result, const suite::Snapshot& snapshot) {
  const bool is_bad = suite::is_bad(result, is_strict_);
  if ((is_terminal_ || only_bad_) && !is_bad) return;
  clear();
  const std::string what = suite::first_line(result);
  fmt::print(stderr, "[{}/{}] {:7} {:5.1f} s  {}{}{}\n", snapshot.done, snapshot.total, suite::to_string(result.state),
             result.seconds, result.which->name, what.empty() ? "" : ": ", what);
}

void SuiteProgress::tick(const suite::Snapshot& snapshot) {
  if (!is_terminal_) return;
  std::string line = fmt::format("forksight suite: {} of {}", snapshot.done, snapshot.total);
  if (snapshot.red != 0) line += fmt::format(", {} red", snapshot.red);
  if (snapshot.eta_s >= 0) line += fmt::format(", {} to go", describe_eta(snapshot.eta_s));
  if (!snapshot.running.empty()) line += fmt::format(": {}", fmt::join(snapshot.running, ", "));
  fmt::print(stderr, "\r\x1b[K{}", line.substr(0, terminal_width() - 1));
  std::fflush(stderr);
  is_shown_ = true;
}

void SuiteProgress::clear() {
  if (!is_shown_) return;
  is_shown_ = false;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace forksight
