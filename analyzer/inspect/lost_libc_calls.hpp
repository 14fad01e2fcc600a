// Explains a child that waits in a libc function for a lock of libc. The memory does not show which thread held the
// lock at the fork. So the holder is assumed to be the thread of the parent that is now inside of a function that takes
// the same lock.
#pragma once

#include "inspect/lost_threads.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

void touch_libc_call(Scene& scene, LostThreads& lost, model::Touch touch, const StuckCall& call, model::Fork& fork);

}  // namespace forksight::inspect
