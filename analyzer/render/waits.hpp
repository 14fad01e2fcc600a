// Describes processes that no finding explains: what their threads wait for, since when, where, and who could end the
// waits.
#pragma once

#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "render/text.hpp"

namespace forksight::render {

// Returns the processes whose waits are known, and which no finding mentions, not even as victims.
std::vector<model::ProcessId> find_without_finding(const model::Model& model, const std::vector<Finding>& findings);

// Returns lines of text; "" if `processes` is empty. Threads that wait in the same way share one entry. A long list is
// cut, and then ends with the number of entries that are left out.
std::string render_waits(const model::Model& model, const std::vector<model::ProcessId>& processes,
                         const TextOptions& options);

}  // namespace forksight::render
