// The standard streams' locks, in a child whose fork did not reset them.
#pragma once

#include <cstdint>

namespace forksight {

// Writes down which of them another thread holds. fork-child-safe.
void record_streams(std::uint64_t fork);

}  // namespace forksight
