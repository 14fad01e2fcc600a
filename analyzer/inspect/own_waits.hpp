// Waits of a child's threads for each other, and for what may be anybody's: a fork is blamed only for what its own
// memory proves, or for what nothing else explains.
#pragma once

#include <cstdint>

#include "inspect/scene.hpp"

namespace forksight::inspect {

// The thread of the same process that a thread waits for: it holds the lock, or is to be joined. 0: none, or not known.
std::int32_t find_own_holder(const Scene& scene, std::size_t subject, const StuckCall& call);

// Of the touches of a process, which begin at this one: keeps those that explain it. Once something proves why the
// process hangs, its other threads merely wait for that. What its first thread waits for, which was there at the fork,
// counts before what threads wait for that it started itself.
void settle_touches(Scene& scene, std::size_t subject, std::size_t first_touch);

}  // namespace forksight::inspect
