// Notes which lost threads wait for signals. These are threads of the parent that are in sigwait() or a similar call
// now.
#pragma once

#include "inspect/scene.hpp"

namespace forksight::inspect {

void note_signal_waits(const Scene& scene, const image::Image& parent, model::Fork& fork);

}  // namespace forksight::inspect
