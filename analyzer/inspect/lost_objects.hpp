// What a child waits for that its fork broke. These are the facts that the shim records when the child touches such an
// object; here they are read from the child's memory afterwards. The lock itself, or what the parent's threads do now,
// shows who holds it.
#pragma once

#include "inspect/lost_threads.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

// Adds to the model, as a touch, what this thread of a forked process waits for, if its fork is the cause. `loss`: the
// latest fork, of the process or of an ancestor, that left threads behind.
void explain(Scene& scene, LostThreads& lost, std::size_t subject, const image::Thread& thread, model::ForkId fork,
             model::ForkId loss);

// For a process that is not forked: a lock of the process whose owner is none of its threads was left locked by a
// thread that has ended. For a forked process only its first thread is known to have been its own. The touch belongs to
// a fork that is still to come: its child would inherit the lock.
void find_ended_owner(Scene& scene, std::size_t subject, const image::Thread& thread);

}  // namespace forksight::inspect
