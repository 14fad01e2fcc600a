// Compares the findings of a report with the expectations of a case. Each difference is one line of text. If there are
// no lines, the findings are as expected.
#pragma once

#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "suite/expectations.hpp"

namespace forksight::suite {

// Compares findings with the expected findings. Each expected finding must occur once, and there must be no other
// finding.
std::vector<std::string> compare_findings(const std::vector<Finding>& findings,
                                          const std::vector<ExpectedFinding>& expected);

// Compares the findings of a run whose options change how the program ends. The findings must be those of `expected`,
// each with the outcome ExpectedRun::outcome. If that outcome is "none", there must be no finding, because the hazard
// does not occur with these options. If ExpectedRun::rule is set, the findings of `expected` do not count: there must
// be exactly one finding, of that rule. Each text of ExpectedRun::says must occur in the sentences of some finding.
std::vector<std::string> compare_ended(const std::vector<Finding>& findings,
                                       const std::vector<ExpectedFinding>& expected, const ExpectedRun& run);

// Returns the certainties of the hang and of the cause, for example "proven/likely"; only one word if both are equal.
std::string certainty_of(const Finding& finding);

}  // namespace forksight::suite
