// Events: threads were made or ended. Slots and the hooks of threads send them; observers.def lists the receivers.
#pragma once

#include "record/slots.hpp"

namespace forksight {

// `slot` belongs to a thread that the calling thread is about to make; the slot is in use from here on.
void thread_created(Slot& slot);
// The calling thread owns `slot` and is about to run its start routine.
void thread_begun(Slot& slot);
// The thread was made. Its life_record was `life`. Its pthread_t was written to `at`, which may no longer exist: the
// thread may have ended by now, and its slot may belong to another one.
void thread_made(std::uint64_t life, const void* at);
// The calling thread was not made through the hooks.
void foreign_thread_noticed();
// A thread is about to be joined. The result is passed to thread_joined() if the join succeeds; 0: nothing to note.
std::uint64_t thread_awaited(std::uint64_t thread_pointer);
void thread_joined(std::uint64_t thread_pointer, std::uint64_t awaited);
// The kernel says that the thread of `slot` has ended. True: the contents of the slot are still needed, so it must not
// be reused.
bool slot_is_needed(Slot& slot);

}  // namespace forksight
