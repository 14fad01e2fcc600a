// What a child waits for that its fork broke: the same facts as the shim records when the child touches it, read out of
// the child's memory after the event. Who holds it is read from the lock, or from what the parent's threads are in now.
#pragma once

#include "inspect/lost_threads.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

// Adds what this thread of a forked process waits for to the touches of the model, if its fork is to blame. `loss`: the
// latest fork, its own or an ancestor's, that left threads behind.
void explain(Scene& scene, LostThreads& lost, std::size_t subject, const image::Thread& thread, model::ForkId fork,
             model::ForkId loss);

// Of a process that is no fork: a lock of its own, whose owner is none of its threads, was left locked by one that has
// ended. Of a fork the first thread alone is known to have been its own. Told as of a fork of the process that is to
// come: that one would inherit it.
void find_ended_owner(Scene& scene, std::size_t subject, const image::Thread& thread);

}  // namespace forksight::inspect
