// Evaluates the rules on the model of the examined processes. A finding is a problem that a rule reports.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight {

// Evaluates all rules, merges equal findings, and adds victims to the findings. A victim is a process that waits for a
// process of the finding, or for another victim. The findings are sorted by three criteria: first by the certainty of
// their harm (proven first), then by their outcome (hangs first), then by the certainty of their cause.
std::vector<Finding> diagnose(const model::Model& model);

// Does the same as diagnose(model). Also appends sentences to `limits` about all rules that were left out, and about
// all rules and searches that ended early. A rule is left out if too little time is left for it. A rule or a search
// ends early if it finds too much or takes too long.
std::vector<Finding> diagnose(const model::Model& model, std::vector<std::string>& limits);

struct Diagnosed {
  std::vector<Finding> findings;
  bool has_all_rules = true;  // false: a rule was left out or has ended early, because the rules took too long
};

// Does the same as diagnose(model, limits). All rules together may take at most `longest` of processor time.
Diagnosed diagnose_within(std::chrono::nanoseconds longest, const model::Model& model,
                          std::vector<std::string>& limits);

// Evaluates the rules for at most files::kLongestRulesOfRun of processor time. Returns true if they find something.
// Also returns true if this time is too short for all rules, because then it is not known what they would find.
bool may_find(const model::Model& model);

// `nameless` is a model that was loaded without symbols. Returns false if no rule would find anything in the model even
// with symbols. Returns true if a rule finds something without symbols, or if a rule that needs names might find
// something.
bool may_find_with_names(const model::Model& nameless);

// Returns the processes that are proven to hang for ever and that no finding in `findings` explains. Leaves out a
// process if forksight can name something that could end its wait.
std::vector<model::ProcessId> find_unexplained_processes(const model::Model& model,
                                                         const std::vector<Finding>& findings);

// Returns one sentence for each process that find_unexplained_processes() returns.
std::vector<std::string> find_unexplained(const model::Model& model, const std::vector<Finding>& findings);

}  // namespace forksight
