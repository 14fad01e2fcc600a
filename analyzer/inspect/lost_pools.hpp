// Pools of threads that a fork left behind, and children that wait for them.
#pragma once

#include <string>

#include "inspect/scene.hpp"

namespace forksight::inspect {

// A library that waits for its own pool appears to wait for a lock of the kind that the pool is built on.
bool is_in_lost_pool(const StuckCall& call, const model::Fork& fork);

// OpenBLAS's OpenMP build asks for a partner thread and spins, in its own code, until that thread comes. Returns the
// library of the partner thread; "" if the child does not spin like this.
std::string find_runtime_of_blas(const Scene& scene, std::size_t child, const StuckCall& call, const model::Fork& fork);

// Adds the touch of a child that waits for the libgomp team that `call` names.
void touch_region(Scene& scene, model::Touch touch, const StuckCall& call, model::Fork& fork);

}  // namespace forksight::inspect
