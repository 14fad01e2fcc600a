// From the model to the findings.
#pragma once

#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight {

// Evaluates all rules, merges equal findings and attaches victims. Proven findings come first, and hangs come before
// the rest.
std::vector<Finding> diagnose(const model::Model& model);

// `nameless` is a model that was loaded without symbols. False: with symbols no rule would find anything either. True:
// a rule finds something without symbols, or a rule that needs names might.
bool may_find_with_names(const model::Model& nameless);

// Processes that are proven dead and that none of `findings` explains. Leaves out processes that something named could
// wake.
std::vector<model::ProcessId> find_unexplained_processes(const model::Model& model,
                                                         const std::vector<Finding>& findings);

// One sentence for each such process, for Model::limits.
std::vector<std::string> find_unexplained(const model::Model& model, const std::vector<Finding>& findings);

// Calls diagnose() and find_unexplained(). Appends to model.limits.
std::vector<Finding> conclude(model::Model& model);

}  // namespace forksight
