// Waits of a child's threads for each other, and for objects that may belong to any thread. The fork counts as the
// cause only if the memory of the child proves it, or if nothing else explains the wait.
#pragma once

#include <cstdint>

#include "inspect/scene.hpp"

namespace forksight::inspect {

// The thread of the same process that a thread waits for: it holds the lock, or is to be joined. 0: none, or not known.
std::int32_t find_own_holder(const Scene& scene, std::size_t subject, const StuckCall& call);

// Drops those touches of a process, from `first_touch` on, that do not explain it. If one proves why the process hangs,
// its other threads merely wait for that. What its first thread waits for, which existed at the fork, counts before
// what threads wait for that the process started itself.
void settle_touches(Scene& scene, std::size_t subject, std::size_t first_touch);

}  // namespace forksight::inspect
