// Makes a large model from a small one.
#pragma once

#include <cstddef>

#include "model/model.hpp"

namespace forksight::test {

// Returns a model with `count` copies of all that `one` contains. Each copy has its own pids, tids, paths, semaphores
// and handles, all on the same hosts, and refers only to itself. The sentences of `one` about what could not be seen
// are not copied.
model::Model copies_of(const model::Model& one, std::size_t count);

}  // namespace forksight::test
