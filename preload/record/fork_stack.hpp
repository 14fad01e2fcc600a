#pragma once

#include <cstdint>

#include "record/slots.hpp"

namespace forksight {

// The kStack record of a fork by the thread of `slot`. A server forks from the same place over and over: where nothing
// but data changed on the stack since the last fork, that record stands for this fork, too.
std::uint64_t record_fork_stack(Slot& slot, const Site& site);

}  // namespace forksight
