// What became of the cases that were run.
#pragma once

#include <string>
#include <vector>

#include "suite/manifest.hpp"

namespace forksight::suite {

enum class State { kGreen, kRed, kSkipped, kUnknown };  // unknown: not run to its end, for somebody stopped the suite

// One of the things that a case is judged by: bare, why, core, observed, and each run that it asks for.
struct Part {
  std::string name;  // "bare", "why", "core", "observed", "--omp=rebuild"
  State state = State::kGreen;
  std::string command;             // what was run, for a shell
  std::vector<std::string> lines;  // red: what was expected and what was seen; skipped: why
  double seconds = 0;
};

struct CaseResult {
  const Case* which = nullptr;
  Expectations expected;
  State state = State::kUnknown;
  std::vector<Part> parts;
  std::vector<std::string> lines;  // of the whole case: why it was skipped, or that its expectations make no sense
  std::string package;             // of Debian's, that has what is missing; "" if none is known
  double seconds = 0;
};

struct Totals {
  int green = 0;
  int red = 0;
  int skipped = 0;
  int unknown = 0;
  int count() const { return green + red + skipped + unknown; }
};
Totals count(const std::vector<CaseResult>& results);

const char* to_string(State state);

}  // namespace forksight::suite
