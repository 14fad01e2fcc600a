// A function of libc's that a child waits in for a lock of libc's own: who was inside of it at the fork is inferred
// from who is inside of a function with the same lock now.
#pragma once

#include "inspect/lost_threads.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

void touch_libc_call(Scene& scene, LostThreads& lost, model::Touch touch, const StuckCall& call, model::Fork& fork);

}  // namespace forksight::inspect
