// Which semaphores are signals. A semaphore has no owner. As a lock it is taken and posted by the same thread; as a
// signal, or as a counter of items or free places, it is posted by any thread. Only a lock can be orphaned, and only a
// lock may be cured.
//   This notes what rules out a lock: an initial value other than one, and a post by a thread that has not taken it.
//   Both are off the fast path. A semaphore that looks like a lock when first seen needs no entry.
#pragma once

#include <semaphore.h>

#include <cstdint>

namespace forksight {

// A semaphore begins here with `value`: what was known of this address concerned another one.
void note_semaphore_begins(const sem_t* semaphore, unsigned value);
void note_semaphore_ends(const sem_t* semaphore);
// A thread that has not taken the semaphore posts it. async-signal-safe.
void note_semaphore_is_signal(const sem_t* semaphore);

// fork-child-safe
bool is_signal_semaphore(std::uint64_t address);
// False once an entry had to make room for another one: from then on it is not certain that any semaphore is a lock.
bool knows_all_signal_semaphores();

}  // namespace forksight
