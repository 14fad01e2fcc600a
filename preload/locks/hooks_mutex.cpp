// Mutexes of every kind.
#include "guest/site.hpp"
#include "locks/lock_guard.hpp"
#if FORKSIGHT_ASSEMBLY
#include "locks/fast_path.hpp"
#endif

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

constexpr auto kKind = trace::LockKind::kMutex;

template <class Lock>
__attribute__((always_inline)) inline int lock_mutex(pthread_mutex_t* mutex, bool timed, Lock lock) {
  return acquire(mutex, kKind, timed, lock);
}

}  // namespace

// On success, the held array has an entry for the mutex with the site of this call.
#if FORKSIGHT_ASSEMBLY
FORKSIGHT_MUTEX_LOCK_IN_ASSEMBLY;
static_assert(EOWNERDEAD == 130);

extern "C" int forksight_slow_pthread_mutex_lock(pthread_mutex_t* mutex, Frame frame) {
  return acquire_slow<Push::kEach>(mutex, kKind, false, frame,
                                   [=] { return FORKSIGHT_RESOLVED(pthread_mutex_lock)(mutex); });
}
#else
FORKSIGHT_EXPORT(int, pthread_mutex_lock, pthread_mutex_t* mutex) {
  return lock_mutex(mutex, false, [=] { return FORKSIGHT_RESOLVED(pthread_mutex_lock)(mutex); });
}
#endif

FORKSIGHT_EXPORT(int, pthread_mutex_trylock, pthread_mutex_t* mutex) {
  return attempt(mutex, kKind, [=] { return FORKSIGHT_NEXT(pthread_mutex_trylock)(mutex); });
}

// This call has a deadline. If the mutex is an orphan, the call returns an error instead of hanging. The touch is
// recorded as timed.
FORKSIGHT_EXPORT(int, pthread_mutex_timedlock, pthread_mutex_t* mutex, const timespec* deadline) {
  return lock_mutex(mutex, true, [=] { return FORKSIGHT_NEXT(pthread_mutex_timedlock)(mutex, deadline); });
}

FORKSIGHT_EXPORT(int, pthread_mutex_clocklock, pthread_mutex_t* mutex, clockid_t clock, const timespec* deadline) {
  return lock_mutex(mutex, true, [=] { return FORKSIGHT_NEXT(pthread_mutex_clocklock)(mutex, clock, deadline); });
}

namespace {

FORKSIGHT_TAIL_CALLED int unlock_slow(pthread_mutex_t* mutex) {
  release_slow(mutex);
  const int result = FORKSIGHT_NEXT(pthread_mutex_unlock)(mutex);
  if (!locks_are_watched()) return result;
  if (result == EPERM) {
    touch_refused_unlock(mutex, result, FORKSIGHT_FRAME().site());
  } else if (result == 0) {
    forget_released(mutex, FORKSIGHT_FRAME().site());
  }
  return result;
}

}  // namespace

// The entry is removed before the mutex is free, so that no other thread acquires the mutex while this entry exists.
FORKSIGHT_EXPORT(int, pthread_mutex_unlock, pthread_mutex_t* mutex) {
  return release_fast<true>(mutex) ? FORKSIGHT_RESOLVED(pthread_mutex_unlock)(mutex) : unlock_slow(mutex);
}
