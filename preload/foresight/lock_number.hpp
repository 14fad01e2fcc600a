// Identifies locks. An address does not identify a lock: memory is freed and reused, and a lock may be destroyed and
// made anew at the same place. So each examined lock gets a number. The number is kept in the lock itself, in words
// that glibc does not use in this kind of lock: the list of a mutex that is not robust, and the padding of a rwlock.
// Whatever makes the lock anew (pthread_mutex_init, PTHREAD_MUTEX_INITIALIZER, a constructor) clears these words.
//   Locks get numbers only if FORKSIGHT_LOCK_ORDER or FORKSIGHT_PREDICT is set. Otherwise this code writes nothing into
//   locks.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"

namespace forksight {

// The number of a lock that the calling thread holds. 0: the lock is of another kind, robust, or shared between
// processes, or its unused words have other contents.
std::uint64_t number_of(trace::LockKind kind, const volatile void* lock);
// A number that is higher than each number that a lock has got so far, in this process, or in an ancestor before it
// forked.
std::uint64_t next_lock_number();

}  // namespace forksight
