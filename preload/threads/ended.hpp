// Threads that ended without returning from a start routine that the shim called: threads that libc made itself (for
// callbacks of timers and of aio), threads that ended by the bare system call, and an initial thread that called
// pthread_exit(). The kernel still lists such an initial thread until all other threads have ended. A hook sees the
// bare system call only if the thread makes it by syscall().
#pragma once

#include "record/slots.hpp"

namespace forksight {

// Finds the threads of this process that no longer exist, and marks their slots as ended. A slot is what the shim knows
// about one thread (record/slots.hpp). The kernel is asked about the initial thread, about each thread that libc or
// unhooked code made, and about all threads if `are_all_in_doubt`. `self`: slot of the forking thread, which is never
// asked about. async-signal-safe.
void end_slots_of_gone_threads(Slot* self, bool are_all_in_doubt);

// True if the initial thread of this process has ended. False if that is not known.
bool initial_thread_has_ended();

// Called when the calling thread is about to end by the bare system call. Does nothing in a child that shares its
// parent's memory (vfork, clone with CLONE_VM): the slot that this function finds there belongs to a thread of the
// parent.
void end_slot_of_exiting_thread();

}  // namespace forksight
