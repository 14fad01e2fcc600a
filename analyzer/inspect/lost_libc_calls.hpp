// A child waits in a libc function for a lock of libc. Which thread held it at the fork is inferred from the thread
// that is inside of a function with the same lock now.
#pragma once

#include "inspect/lost_threads.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

void touch_libc_call(Scene& scene, LostThreads& lost, model::Touch touch, const StuckCall& call, model::Fork& fork);

}  // namespace forksight::inspect
