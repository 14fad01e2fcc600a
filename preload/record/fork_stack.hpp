#pragma once

#include <cstdint>

#include "record/slots.hpp"

namespace forksight {

// Returns the kStack record of a fork by the thread of `slot`. A server forks from the same place again and again. If
// only data on the stack has changed since the last fork, the function returns the record of that fork.
std::uint64_t record_fork_stack(Slot& slot, const Site& site);

}  // namespace forksight
