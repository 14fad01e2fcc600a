// What the threads of processes wait for, since when, where, and who could end that: of processes that no finding
// explains.
#pragma once

#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "render/text.hpp"

namespace forksight::render {

// The processes whose waits are known and of which no finding speaks, be it as of a victim.
std::vector<model::ProcessId> find_untold(const model::Model& model, const std::vector<Finding>& findings);

// Lines of text; "" for none. Threads that wait alike are told once; long lists are cut, with a count of what is left
// out.
std::string render_waits(const model::Model& model, const std::vector<model::ProcessId>& processes,
                         const TextOptions& options);

}  // namespace forksight::render
