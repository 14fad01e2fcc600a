// Steps that make, end, await and signal threads and processes.
#pragma once

#include "control.hpp"
#include "scenario.hpp"

namespace truth {

// Returns false if the step is not of this kind. `exit`, `_exit` and `end` do not return.
bool perform_process_step(int index, int* result);

void await_thread_end(const Slot& slot);

// Until the thread or process has come to be.
void await_birth(int slot);

// The calling thread has no step more. The first thread of a process calls exit(0).
void leave_list();

}  // namespace truth
