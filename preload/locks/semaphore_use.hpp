// Keeps a table of the semaphores that are signals and not locks. A semaphore has no owner. If threads use it as a
// lock, the same thread takes and posts it. If threads use it to notify each other, or to count items or free places,
// any thread posts it. Such a semaphore is called a signal here. Only a lock can be an orphan: its holder is a thread
// that the fork did not copy. So only a semaphore that is a lock may be cured, which means that it is set free in the
// child.
//   A semaphore is added to the table if its initial value is not one, or if a thread posts it without having taken it.
//   The hook of sem_init() and the slow path of the hook of sem_post() notice this. All other semaphores count as locks
//   and need no entry.
#pragma once

#include <semaphore.h>

#include <cstdint>

namespace forksight {

// Called when a semaphore was initialised at this address with `value`. Adds the semaphore to the table if `value` is
// not 1. If `value` is 1, removes the entry of the address, because it belonged to an earlier semaphore there.
void note_semaphore_begins(const sem_t* semaphore, unsigned value);
void note_semaphore_ends(const sem_t* semaphore);
// Called when a thread posts the semaphore without having taken it. async-signal-safe.
void note_semaphore_is_signal(const sem_t* semaphore);

// True if the table contains the semaphore. May be called in a forked child (fork-child-safe).
bool is_signal_semaphore(std::uint64_t address);
// False once an entry had to make room for another one: from then on, no semaphore is known for certain to be a lock.
bool knows_all_signal_semaphores();

}  // namespace forksight
