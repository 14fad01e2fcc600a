#pragma once

#include <cstddef>

namespace forksight::model {

// Index into one of Model's vectors.
using ProcessId = std::size_t;
using ThreadId = std::size_t;
using LockId = std::size_t;
using PoolId = std::size_t;
using ForkId = std::size_t;
using HandlerId = std::size_t;
using LifeId = std::size_t;

}  // namespace forksight::model
