// Threads came or went. Slots and the hooks of threads tell it here; observers.def lists who is told.
#pragma once

#include "record/slots.hpp"

namespace forksight {

// `slot` is of a thread about to be made by the calling one; it lives from here on.
void thread_created(Slot& slot);
// The calling thread is the one of `slot`, and about to run its start routine.
void thread_begun(Slot& slot);
// It was made; its life_record was `life`, and its pthread_t was written to `at`, where it may be no more: it may have
// ended by now, and its slot be another one's.
void thread_made(std::uint64_t life, const void* at);
// The calling thread was not made through the hooks.
void foreign_thread_met();
// A thread is about to be joined. The answer goes to thread_joined() if that succeeds; 0: nothing is to be noted.
std::uint64_t thread_awaited(std::uint64_t thread_pointer);
void thread_joined(std::uint64_t thread_pointer, std::uint64_t awaited);
// The kernel says that the thread of `slot` is gone. True: what the slot says is still of use, it must not be reused.
bool slot_is_needed(Slot& slot);

}  // namespace forksight
