// For the supervisor: signals that no thread takes in the forked children of a run.
#pragma once

#include <cstdint>
#include <map>

#include "model/model.hpp"

namespace forksight {

// By pid of a child that has not called exec: the signals that threads of its parent waited for, if the fork left these
// threads behind.
std::map<std::int32_t, std::uint64_t> find_lost_signals(const model::Model& model);

}  // namespace forksight
