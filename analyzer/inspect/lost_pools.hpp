// Finds pools of threads that a fork left behind, and children that wait for such a pool.
#pragma once

#include <string>

#include "inspect/scene.hpp"

namespace forksight::inspect {

// True if the child waits inside of a library whose own thread pool the fork left behind. Depending on how the pool is
// built, such a wait looks like a wait for a condition variable, a semaphore or a lock of the library's own. A wait for
// a pthread mutex does not count.
bool is_in_lost_pool(const StuckCall& call, const model::Fork& fork);

// Finds out whether the child spins because it waits for the threads of an OpenMP team. This happens if a BLAS library
// that is built with OpenMP starts a region: the code of the BLAS library spins until the other threads of the team
// come. Returns the path of the OpenMP runtime; "" if the child does not spin like this.
std::string find_runtime_of_blas(const Scene& scene, std::size_t child, const StuckCall& call, const model::Fork& fork);

// Adds a touch (model::Touch) for a child that waits for an OpenMP team. `call.library` is the path of the libgomp of
// this team.
void touch_region(Scene& scene, model::Touch touch, const StuckCall& call, model::Fork& fork);

}  // namespace forksight::inspect
