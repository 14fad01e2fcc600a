// For the supervisor: calls that have not come back, and of which the traces will say no more until they do.
#pragma once

#include <vector>

#include "model/model.hpp"
#include "watch/supervisor.hpp"

namespace forksight {

// Atfork handlers in the middle of which a thread is.
std::vector<watch::StalledCall> find_open_handlers(const model::Model& model);
// Waits for timers that a child does not have.
std::vector<watch::StalledCall> find_timer_waits(const model::Model& model);

}  // namespace forksight
