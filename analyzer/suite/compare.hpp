// Compares the findings of a report with what a case expects: each difference is one line of text; no lines mean
// agreement.
#pragma once

#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "suite/expectations.hpp"

namespace forksight::suite {

// Each expected finding must occur once, and nothing else.
std::vector<std::string> compare_findings(const std::vector<Finding>& findings,
                                          const std::vector<ExpectedFinding>& expected);

// Compares the findings of a run whose options change how the program ends. The expected findings must be reported,
// with the outcome of this run, and nothing else. Outcome "none": nothing must be reported, because with these options
// the hazard does not occur. `says`: parts of sentences that the findings must have.
std::vector<std::string> compare_ended(const std::vector<Finding>& findings,
                                       const std::vector<ExpectedFinding>& expected, const ExpectedRun& run);

// The certainty of the hang and of the cause: "proven/likely"; one word if both are equal.
std::string certainty_of(const Finding& finding);

}  // namespace forksight::suite
