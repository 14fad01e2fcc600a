// The stack at which a lock that is held at a fork was taken, copied in the forked child. A lock that is held over many
// forks has the same stack at each of them: it is written to a trace once, by the child that finds it first.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "record/slots.hpp"

namespace forksight {

// A reference to the stack at `site`, which belongs to `holder`. fork-child-safe; only for the shim's child handler,
// when there is one thread.
std::uint64_t record_held_stack(const Site& site, const Slot& holder, bool is_forking_thread);

}  // namespace forksight
