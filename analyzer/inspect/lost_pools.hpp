// Pools of threads that a fork left behind, and children that wait for them.
#pragma once

#include <string>

#include "inspect/scene.hpp"

namespace forksight::inspect {

// The wait of a library for its own pool looks like a lock of whatever kind the pool is built on.
bool is_in_lost_pool(const StuckCall& call, const model::Fork& fork);

// OpenBLAS's OpenMP build asks for a partner and spins, in its own code, until that one comes: the library of which the
// partner was a thread, "" if the child does not spin so.
std::string find_runtime_of_blas(const Scene& scene, std::size_t child, const StuckCall& call, const model::Fork& fork);

// The child waits for the team of libgomp that `call` names.
void touch_region(Scene& scene, model::Touch touch, const StuckCall& call, model::Fork& fork);

}  // namespace forksight::inspect
