// Locks of Python that another thread had at the fork, by what the lock itself tells.
#pragma once

#include <optional>

#include "inspect/lost_threads.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

// `call`: of kind kPythonLock. nullopt: no fork is to blame for it.
std::optional<model::Held> find_lost_python_lock(Scene& scene, LostThreads& lost, std::size_t child,
                                                 const StuckCall& call, const model::Fork& fork);

}  // namespace forksight::inspect
