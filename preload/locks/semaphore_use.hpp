// Which semaphores are signals. A semaphore has no owner. If it is used as a lock, the same thread takes and posts it.
// If it is used as a signal, or as a counter of items or free places, any thread posts it. Only a lock can be orphaned,
// and only a lock may be cured.
//   The table contains semaphores that are not locks. A semaphore is entered if its initial value is not one, or if a
//   thread posts it without having taken it. The hooks notice both facts outside of the fast path. All other semaphores
//   count as locks and need no entry.
#pragma once

#include <semaphore.h>

#include <cstdint>

namespace forksight {

// Called when a semaphore was initialised at this address with `value`. Enters the semaphore into the table if `value`
// is not 1. If `value` is 1, removes the entry of the address, because it belonged to an earlier semaphore there.
void note_semaphore_begins(const sem_t* semaphore, unsigned value);
void note_semaphore_ends(const sem_t* semaphore);
// Called when a thread posts the semaphore without having taken it. async-signal-safe.
void note_semaphore_is_signal(const sem_t* semaphore);

// True if the table contains the semaphore. fork-child-safe
bool is_signal_semaphore(std::uint64_t address);
// False once an entry had to make room for another one: from then on, no semaphore is known for certain to be a lock.
bool knows_all_signal_semaphores();

}  // namespace forksight
