// From the model to what is to be said about it.
#pragma once

#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight {

// All rules, equal findings merged, victims attached; the certain ones first, hangs before the rest.
std::vector<Finding> diagnose(const model::Model& model);

// `nameless` was loaded without symbols. False: with them, nothing would be found in it either. True where something is
// found without them, and where a rule may speak that needs a name.
bool may_find_with_names(const model::Model& nameless);

// Processes that are proven dead and that none of `findings` explains, those left out that something named could wake.
std::vector<model::ProcessId> find_unexplained_processes(const model::Model& model,
                                                         const std::vector<Finding>& findings);

// One sentence for each of them, for Model::limits.
std::vector<std::string> find_unexplained(const model::Model& model, const std::vector<Finding>& findings);

// Both: what a report is made of. Appends to model.limits.
std::vector<Finding> conclude(model::Model& model);

}  // namespace forksight
