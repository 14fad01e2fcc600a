#include "suite/results.hpp"

namespace forksight::suite {

Totals count(const std::vector<CaseResult>& results) {
  Totals totals;
  for (const CaseResult& result : results) {
    switch (result.state) {
      case State::kGreen: ++totals.green; break;
      case State::kRed: ++totals.red; break;
      case State::kSkipped: ++totals.skipped; break;
      case State::kUnknown: ++totals.unknown; break;
    }
  }
  return totals;
}

const char* to_string(State state) {
  switch (state) {
    case State::kGreen: return "ok";
    case State::kRed: return "red";
    case State::kSkipped: return "skipped";
    case State::kUnknown: return "unknown";
  }
  return "unknown";
}

}  // namespace forksight::suite
