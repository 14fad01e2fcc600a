// Steps that use descriptors: pipes, socket pairs, FIFOs, eventfds, timers, channels, and locks of files.
#pragma once

#include "scenario.hpp"

namespace truth {

// Returns false if the step is not of this kind.
bool perform_file_step(const Step& step, int* result);

}  // namespace truth
