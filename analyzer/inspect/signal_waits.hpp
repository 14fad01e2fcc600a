// Threads of a parent that take signals, recognised by the system call that they are in now.
#pragma once

#include "inspect/scene.hpp"

namespace forksight::inspect {

void note_signal_waits(const Scene& scene, const image::Image& parent, model::Fork& fork);

}  // namespace forksight::inspect
