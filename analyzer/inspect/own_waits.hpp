// Waits of a child's threads for each other, and waits for objects that do not show which thread should end the wait.
// The fork counts as the cause of the second kind only if the child's memory proves it, or if nothing else explains the
// hang.
#pragma once

#include <cstdint>

#include "inspect/scene.hpp"

namespace forksight::inspect {

// The thread of the same process for which a thread waits: it holds the lock, or is to be joined. 0: none, or not
// known.
std::int32_t find_own_holder(const Scene& scene, std::size_t subject, const StuckCall& call);

// Drops touches of a process, from `first_touch` on, that are only guesses, if there is a better explanation: a touch
// that proves why the process hangs, or a deadlock of its own threads. Also drops a guess about a thread that the child
// started, if there is a touch of the child's first thread, because that thread existed at the fork.
void drop_weaker_guesses(Scene& scene, std::size_t subject, std::size_t first_touch);

}  // namespace forksight::inspect
