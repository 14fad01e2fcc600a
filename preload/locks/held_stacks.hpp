// Records the stack of the call that took a held lock. The forked child copies this stack from its frozen memory. A
// lock that is held over many forks has the same stack at each of them. So only the first child writes this stack to
// the trace.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "record/slots.hpp"

namespace forksight {

// Returns a reference to the stack at `site`, which belongs to `holder`. fork-child-safe. Only for the shim's part of a
// fork in the child, where no other thread runs.
std::uint64_t record_held_stack(const Site& site, const Slot& holder, bool is_forking_thread);

}  // namespace forksight
