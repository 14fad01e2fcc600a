// Which lock it is. An address does not tell: memory is freed and used again, and a lock may be destroyed and made anew
// where it was. So a lock that is looked at gets a number, which is kept in the lock itself, in words that glibc has no
// use for in this kind of lock: the list of a mutex that is not robust, and the padding of a rwlock. Whatever makes the
// lock anew (pthread_mutex_init, PTHREAD_MUTEX_INITIALIZER, a constructor) clears them.
//
// Only where FORKSIGHT_LOCK_ORDER or FORKSIGHT_PREDICT asked for it: else nothing is ever written into a lock.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"

namespace forksight {

// The number of a lock that the calling thread holds. 0: of this kind, robust, shared between processes, or with words
// there that are not ours.
std::uint64_t number_of(trace::LockKind kind, const volatile void* lock);
// All numbers that were given are below this one, in this process and before its fork.
std::uint64_t next_lock_number();

}  // namespace forksight
