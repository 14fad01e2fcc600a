// Events: threads were made, joined or ended. slots.cpp and the hooks of threads send these events. observers.def lists
// the receivers.
#pragma once

#include "record/slots.hpp"

namespace forksight {

// The calling thread is about to make the thread of `slot`. The slot is in use from here on.
void thread_created(Slot& slot);
// The calling thread owns `slot` and is about to run its start routine.
void thread_begun(Slot& slot);
// A thread was made. `life` is the life_record of its slot. The pthread_t of the thread was written to `at`. If the
// thread has ended by now, its slot may belong to another thread, and the memory at `at` may be gone.
void thread_made(std::uint64_t life, const void* at);
// The calling thread was not made through the hooks.
void foreign_thread_noticed();
// A thread is about to be joined. If the join succeeds, the caller passes the result to thread_joined(); 0: there is
// nothing to record about the join.
std::uint64_t thread_awaited(std::uint64_t thread_pointer);
void thread_joined(std::uint64_t thread_pointer, std::uint64_t awaited);
// The kernel says that the thread of `slot` has ended. True: the contents of the slot are still needed, so it must not
// be reused.
bool slot_is_needed(Slot& slot);

}  // namespace forksight
