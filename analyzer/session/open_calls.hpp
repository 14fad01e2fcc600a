// Finds, for the supervisor, the calls that have not returned according to the traces.
#pragma once

#include <vector>

#include "model/model.hpp"
#include "watch/supervisor.hpp"

namespace forksight {

// Finds the calls of atfork handlers that have not returned.
std::vector<watch::StalledCall> find_open_handlers(const model::Model& model);
// Finds waits of forked children for a timer that only the parent has.
std::vector<watch::StalledCall> find_timer_waits(const model::Model& model);

}  // namespace forksight
