// Finds, for the supervisor, the signals that no thread takes in the forked children of a run.
#pragma once

#include <cstdint>
#include <map>

#include "model/model.hpp"

namespace forksight {

// Returns, by pid of a child that has not called exec, the signals that lost threads of the child were waiting for at
// the fork.
std::map<std::int32_t, std::uint64_t> find_lost_signals(const model::Model& model);

}  // namespace forksight
