// Where a lock that is held at a fork was taken, copied in the forked child. A lock that is held over many forks has
// the same stack at each of them: it is written once in a trace, whichever child found it first.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "record/slots.hpp"

namespace forksight {

// A reference to the stack at `site`, which is `holder`'s. fork-child-safe; for the child's handler alone, where there
// is one thread.
std::uint64_t record_held_stack(const Site& site, const Slot& holder, bool is_forking_thread);

}  // namespace forksight
