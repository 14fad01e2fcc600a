// Finds waits of a child's threads for each other. Also judges waits for objects that do not show which thread should
// end the wait. The fork counts as the cause of a wait for such an object only if the child's memory proves it, or if
// nothing else explains the hang.
#pragma once

#include <cstdint>

#include "inspect/scene.hpp"

namespace forksight::inspect {

// Returns the tid of the thread of the same process for which the call waits: this thread holds the lock, or is to be
// joined. 0: there is none, or it is not known.
std::int32_t find_own_holder(const Scene& scene, std::size_t subject, const StuckCall& call);

// Looks at the touches of a process, from `first_touch` on. If several of them are about the same lock, keeps only the
// first. Drops the touches that are only guesses, if there is a better explanation: a touch that proves why the process
// hangs, or a deadlock of its own threads. If the child's first thread has a touch, also drops the guesses about the
// other threads, because only the first thread existed at the fork.
void drop_weaker_findings(Scene& scene, std::size_t subject, std::size_t first_touch);

}  // namespace forksight::inspect
