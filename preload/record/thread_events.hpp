// Threads came or went. Slots and the hooks of threads tell it here; observers.def lists who is told.
#pragma once

#include "record/slots.hpp"

namespace forksight {

// `slot` is of a thread about to be made by the calling one; it lives from here on.
void thread_created(Slot& slot);
// The calling thread was not made through the hooks.
void foreign_thread_met();
// A thread is about to be joined. The answer goes to thread_joined() if that succeeds; 0: nothing is to be noted.
std::uint64_t thread_awaited(std::uint64_t thread_pointer);
void thread_joined(std::uint64_t awaited);
// The kernel says that the thread of `slot` is gone. True: what the slot says is still of use, it must not be reused.
bool slot_is_needed(Slot& slot);

}  // namespace forksight
