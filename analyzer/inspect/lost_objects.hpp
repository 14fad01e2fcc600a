// Finds out whether a child waits for an object that its fork broke. The shim records such a wait as a touch. Without
// the shim, the wait is found afterwards in the child's memory. Some locks store the id of the thread that holds them.
// For other objects, the present stacks of the parent's threads may show which thread held the object.
#pragma once

#include "inspect/lost_threads.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

// If a fork is the reason why this thread of a forked process waits, adds a touch to the model. `fork`: the fork that
// made the process. `loss`: the latest fork that left threads behind. `loss` is either `fork`, or a fork that made an
// ancestor of the process. If no fork left threads behind, `loss` is `fork`.
void explain(Scene& scene, LostThreads& lost, std::size_t subject, const image::Thread& thread, model::ForkId fork,
             model::ForkId loss);

// Finds out whether `thread` waits for a mutex or rwlock whose owner has ended. The owner must have been a thread of
// the process itself. In a process that is not forked, every owner was such a thread. In a forked process, the owner
// may also be a thread that the fork left behind. So in a forked process, the owner counts only if the owner is the
// first thread. The kernel lists the first thread even after its end. If there is such a lock, adds to the model a fork
// that has no child, and at which the lock was held. A child that the process forks later would inherit the locked
// lock.
void find_ended_owner(Scene& scene, std::size_t subject, const image::Thread& thread);

}  // namespace forksight::inspect
