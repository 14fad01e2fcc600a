// The results of the cases that were run.
#pragma once

#include <string>
#include <vector>

#include "suite/manifest.hpp"

namespace forksight::suite {

enum class State { kGreen, kRed, kSkipped, kUnknown };  // kUnknown: the suite was stopped before the end of the case

// One of the parts by which a case is judged: bare, why, core, observed, and each run that the case asks for.
struct Part {
  std::string name;  // "bare", "why", "core", "observed", "--omp=rebuild"
  State state = State::kGreen;
  std::string command;             // the command, for a shell
  std::vector<std::string> lines;  // kRed: what was expected and what was seen; kSkipped: the reason
  double seconds = 0;
};

struct CaseResult {
  const Case* which = nullptr;
  Expectations expected;
  State state = State::kUnknown;
  std::vector<Part> parts;
  std::vector<std::string> lines;  // about the whole case: why it was skipped, or what went wrong
  std::string package;             // the Debian package that contains what is missing; "" if none is known
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
