// Finds, for the supervisor, the signals that no thread takes in the forked children of a run.
#pragma once

#include <cstdint>
#include <map>

#include "model/model.hpp"

namespace forksight {

// For each forked child that has not called exec, returns the signals that its lost threads waited for at the fork. The
// key is the pid of the child. Each signal is one bit of the value.
std::map<std::int32_t, std::uint64_t> find_lost_signals(const model::Model& model);

}  // namespace forksight
