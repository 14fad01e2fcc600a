// Finds out whether a child waits for an object that its fork broke. The shim records such a wait as a touch. Without
// the shim, the wait is found afterwards in the child's memory. The lock itself, or what the parent's threads do now,
// shows which thread holds it.
#pragma once

#include "inspect/lost_threads.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

// If a fork is the reason why this thread of a forked process waits, adds a touch to the model. `fork`: the fork that
// made the process. `loss`: the same fork, if it left threads behind. Otherwise the latest earlier fork that did, among
// those that made the ancestors of the process. If there is none, `loss` is `fork`.
void explain(Scene& scene, LostThreads& lost, std::size_t subject, const image::Thread& thread, model::ForkId fork,
             model::ForkId loss);

// Finds out whether `thread` waits for a lock whose owner ended while it held the lock. If the process is not forked,
// any owner that is not among its living threads counts as ended. If the process is forked, only its first thread can
// count, because a fork may have left any other owner behind. The function adds a fork without a child to the model,
// with the lock among the locks held at this fork. It stands for a fork that the process could still make: the child
// would inherit the lock locked.
void find_ended_owner(Scene& scene, std::size_t subject, const image::Thread& thread);

}  // namespace forksight::inspect
