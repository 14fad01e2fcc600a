// For the supervisor: which signals the forked children of a run have nobody for.
#pragma once

#include <cstdint>
#include <map>

#include "model/model.hpp"

namespace forksight {

// By pid of a child that has not called exec: the signals that threads waited for which its fork left behind.
std::map<std::int32_t, std::uint64_t> find_lost_signals(const model::Model& model);

}  // namespace forksight
