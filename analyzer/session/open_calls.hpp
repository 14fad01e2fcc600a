// For the supervisor: calls that have not returned according to the traces.
#pragma once

#include <vector>

#include "model/model.hpp"
#include "watch/supervisor.hpp"

namespace forksight {

// Atfork handlers that a thread is inside of.
std::vector<watch::StalledCall> find_open_handlers(const model::Model& model);
// Waits of forked children for timers of their parents, which a child does not have.
std::vector<watch::StalledCall> find_timer_waits(const model::Model& model);

}  // namespace forksight
