// Finds locks of Python that another thread held at the fork, as far as the memory of the lock shows the holder.
#pragma once

#include <optional>

#include "inspect/lost_threads.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

// `call` must have the kind kPythonLock. Returns the lock and its holder; nullopt if the fork is not the cause of the
// wait.
std::optional<model::Held> find_lost_python_lock(Scene& scene, LostThreads& lost, std::size_t child,
                                                 const StuckCall& call, const model::Fork& fork);

}  // namespace forksight::inspect
