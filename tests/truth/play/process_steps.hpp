// Steps that create, end, wait for and signal threads and processes.
#pragma once

#include "control.hpp"
#include "scenario.hpp"

namespace truth {

// Returns false if the step is not of this kind. `exit`, `_exit` and `end` do not return.
bool perform_process_step(int index, int* result);

void await_thread_end(const Slot& slot);

// Waits until the thread of this slot has started.
void await_birth(int slot);

// The calling thread calls this when it has no more steps. The first thread of a process then calls exit(0).
void leave_list();

}  // namespace truth
