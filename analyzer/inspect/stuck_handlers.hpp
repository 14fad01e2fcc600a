// Adds to the scene an atfork handler that has not returned. The stack of its thread shows such a handler: inside of
// the frame of fork() there are frames of the handler.
#pragma once

#include <optional>

#include "inspect/scene.hpp"

namespace forksight::inspect {

// `fork`: the fork that made this process, if it is known.
void add_stuck_handler(Scene& scene, std::size_t subject, const image::Thread& thread,
                       std::optional<model::ForkId> fork);

}  // namespace forksight::inspect
