// Finds out whether a child waits for an object that its fork broke. The shim records such a wait as a touch. Without
// the shim, the wait is found afterwards in the child's memory. The lock itself, or what the parent's threads do now,
// shows which thread holds it.
#pragma once

#include "inspect/lost_threads.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

// If a fork is the reason why this thread of a forked process waits, adds a touch to the model. `fork`: the fork that
// made the process. `loss`: the latest fork, of the process or of an ancestor, that left threads behind; if there is
// none, the same as `fork`.
void explain(Scene& scene, LostThreads& lost, std::size_t subject, const image::Thread& thread, model::ForkId fork,
             model::ForkId loss);

// Finds an awaited lock that a thread of the process held when that thread ended. If the process is not forked, each
// lock counts whose owner is none of its threads. If the process is forked, the owner must be its first thread, because
// no other owner is known to have been a thread of the process. Adds the lock to a fork without a child, because a
// future child would inherit the lock locked.
void find_ended_owner(Scene& scene, std::size_t subject, const image::Thread& thread);

}  // namespace forksight::inspect
