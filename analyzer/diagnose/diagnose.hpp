// Makes findings from the model.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight {

// Evaluates all rules, merges equal findings and attaches victims. The findings are sorted by three criteria: first by
// the certainty of their harm (proven first), then by their outcome (hangs first), then by the certainty of their
// cause.
std::vector<Finding> diagnose(const model::Model& model);

// Does the same. Appends sentences to `limits` about each rule and each search that was left out or has ended early,
// because it found too much or took too long.
std::vector<Finding> diagnose(const model::Model& model, std::vector<std::string>& limits);

struct Diagnosed {
  std::vector<Finding> findings;
  bool has_all_rules = true;  // false: a rule was left out or has ended early, because the rules took too long
};

// Does the same. The rules may take `longest` of processor time.
Diagnosed diagnose_within(std::chrono::nanoseconds longest, const model::Model& model,
                          std::vector<std::string>& limits);

// True if diagnose() finds something, or if the rules take so long that this is not known. Takes little time.
bool may_find(const model::Model& model);

// `nameless` is a model that was loaded without symbols. Returns false if no rule would find anything in the model even
// with symbols. Returns true if a rule finds something without symbols, or if a rule that needs names might find
// something.
bool may_find_with_names(const model::Model& nameless);

// Returns the processes that are proven dead and that none of `findings` explains. Leaves out a process if forksight
// can name something that could end its wait.
std::vector<model::ProcessId> find_unexplained_processes(const model::Model& model,
                                                         const std::vector<Finding>& findings);

// Returns one sentence for each process that find_unexplained_processes() returns.
std::vector<std::string> find_unexplained(const model::Model& model, const std::vector<Finding>& findings);

}  // namespace forksight
