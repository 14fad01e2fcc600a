// Waits of a child's threads for each other, and for objects that do not show which thread should end the wait. For
// these the fork counts as the cause only if the child's memory proves it, or if nothing else explains the hang.
#pragma once

#include <cstdint>

#include "inspect/scene.hpp"

namespace forksight::inspect {

// The thread of the same process that a thread waits for: it holds the lock, or is to be joined. 0: none, or not known.
std::int32_t find_own_holder(const Scene& scene, std::size_t subject, const StuckCall& call);

// Drops touches of a process, from `first_touch` on, that are only guesses, if there is a better explanation: a touch
// that proves why the process hangs, or a deadlock of its own threads. A guess about a thread that the child has
// started is also dropped if there is a touch of its first thread, which existed at the fork.
void drop_weaker_guesses(Scene& scene, std::size_t subject, std::size_t first_touch);

}  // namespace forksight::inspect
