// The mutexes of C11, which are those of POSIX under another name. libc's functions for these mutexes call internal
// functions of libc. So a call of mtx_lock() does not pass through the hook of pthread_mutex_lock().
#include <threads.h>

#include "guest/site.hpp"
#include "locks/lock_guard.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

constexpr auto kKind = trace::LockKind::kMutex;

// The hook makes a tail call to this function, so the frame of this function has the return address of the hook's
// caller.
__attribute__((noinline, cold)) int unlock_slow(mtx_t* mutex) {
  release_slow(mutex);
  const int result = FORKSIGHT_NEXT(mtx_unlock)(mutex);
  if (!locks_are_watched()) return result;
  if (result == thrd_error) {
    touch_refused_unlock(mutex, EPERM, FORKSIGHT_FRAME().site());
  } else if (result == thrd_success) {
    forget_orphan(mutex, trace::LockKind::kMutex);
  }
  return result;
}

}  // namespace

static_assert(thrd_success == 0, "was_acquired");

FORKSIGHT_EXPORT(int, mtx_lock, mtx_t* mutex) {
  return acquire(mutex, kKind, false, [=] { return FORKSIGHT_NEXT(mtx_lock)(mutex); });
}

FORKSIGHT_EXPORT(int, mtx_trylock, mtx_t* mutex) {
  return attempt(mutex, kKind, [=] { return FORKSIGHT_NEXT(mtx_trylock)(mutex); });
}

FORKSIGHT_EXPORT(int, mtx_timedlock, mtx_t* mutex, const timespec* deadline) {
  return acquire(mutex, kKind, true, [=] { return FORKSIGHT_NEXT(mtx_timedlock)(mutex, deadline); });
}

FORKSIGHT_EXPORT(int, mtx_unlock, mtx_t* mutex) {
  if (FORKSIGHT_UNLIKELY(!release_fast(mutex))) return unlock_slow(mutex);
  return FORKSIGHT_NEXT(mtx_unlock)(mutex);
}
