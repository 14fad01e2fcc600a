// Steps that make, end, await and signal threads and processes.
#pragma once

#include "control.hpp"
#include "scenario.hpp"

namespace truth {

// False: it is no step of this kind. `exit`, `_exit`, `end` and `exec` do not return.
bool perform_process_step(int slot, int index, int* result);

void await_thread_end(const Slot& slot);

// The first thread of a process: what its list does not end, `exit 0` does.
void play_first_thread(int slot, int first_step);

}  // namespace truth
