// The findings of a report against what a case expects: each difference is one line of text, none is agreement.
#pragma once

#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "suite/expectations.hpp"

namespace forksight::suite {

// Each expected finding once, and nothing else.
std::vector<std::string> compare_findings(const std::vector<Finding>& findings,
                                          const std::vector<ExpectedFinding>& expected);

// What was expected as a hang is there still, with the outcome of this run, and nothing else; outcome "none": not even
// that, because what the run did leaves no trace of it. `says` are parts of the findings' sentences.
std::vector<std::string> compare_ended(const std::vector<Finding>& findings,
                                       const std::vector<ExpectedFinding>& expected, const ExpectedRun& run);

// That it hangs, and why: "proven/likely"; one word where both are equal.
std::string certainty_of(const Finding& finding);

}  // namespace forksight::suite
