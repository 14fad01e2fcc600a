#pragma once

#include <cstddef>

namespace forksight::model {

// Each id is an index into one of the vectors of model::Model.
using ProcessId = std::size_t;
using ThreadId = std::size_t;
using LockId = std::size_t;
using PoolId = std::size_t;
using ForkId = std::size_t;
using HandlerId = std::size_t;
using LifeId = std::size_t;

}  // namespace forksight::model
