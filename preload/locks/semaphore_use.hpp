// Which semaphores are signals. A semaphore has no owner: as a lock it is taken and posted by the same thread; as a
// signal, a counter of items or of free places it is posted by whoever has something to say. Only the first kind can be
// orphaned, and only it may be cured.
//
// Noted is what rules a lock out: an initial value other than one, and a post by a thread that has not taken it. Both
// are off the fast path. A lock that is seen for the first time needs no entry.
#pragma once

#include <semaphore.h>

#include <cstdint>

namespace forksight {

// The semaphore begins with `value`: what was known of its address is of another one.
void note_semaphore_begins(const sem_t* semaphore, unsigned value);
void note_semaphore_ends(const sem_t* semaphore);
// A thread that has not taken the semaphore posts it. async-signal-safe.
void note_semaphore_is_signal(const sem_t* semaphore);

// fork-child-safe
bool is_signal_semaphore(std::uint64_t address);
// False once an entry had to make room for another: then no semaphore is surely a lock.
bool knows_all_signal_semaphores();

}  // namespace forksight
