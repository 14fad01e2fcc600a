// Threads that ended without a word: those that libc made itself (the callbacks of timers and of aio), those that left
// by the system call, and an initial thread that called pthread_exit() and is kept by the kernel until the others have
// ended.
#pragma once

#include "record/slots.hpp"

namespace forksight {

// Slots of this process whose threads are gone end. The kernel is asked of each thread that libc or a stranger made,
// and of all where `are_all_in_doubt`. `self`: of the forking thread. async-signal-safe.
void end_slots_of_gone_threads(Slot* self, bool are_all_in_doubt);

// After that.
bool initial_thread_has_ended();

// The calling thread is about to leave by the system call. Not a process that shares this one's memory.
void end_slot_of_exiting_thread();

}  // namespace forksight
