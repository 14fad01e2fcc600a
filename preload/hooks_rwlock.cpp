// Read-write locks. A reader leaves no trace of who it is in the lock: only the held arrays know.
#include "lock_guard.hpp"
#include "site.hpp"

#include "guest.hpp"

using namespace forksight;

namespace {

using trace::LockKind;

template <class Lock>
int acquire(pthread_rwlock_t* rwlock, LockKind kind, bool timed, const Site& site, Lock lock) {
  int result = 0;
  if (FORKSIGHT_LIKELY(!g_next.armed)) {
    result = lock();
  } else {
    const auto try_lock = [&] {
      return kind == LockKind::kRwlockRead ? FORKSIGHT_NEXT(pthread_rwlock_tryrdlock)(rwlock)
                                           : FORKSIGHT_NEXT(pthread_rwlock_trywrlock)(rwlock);
    };
    result = acquire_armed(rwlock, kind, timed, site, try_lock, lock);
  }
  if (FORKSIGHT_LIKELY(result == 0)) note_acquired(rwlock, kind, site);
  return result;
}

}  // namespace

FORKSIGHT_EXPORT(int, pthread_rwlock_rdlock, pthread_rwlock_t* rwlock) {
  return acquire(rwlock, LockKind::kRwlockRead, false, FORKSIGHT_SITE(),
                 [&] { return FORKSIGHT_NEXT(pthread_rwlock_rdlock)(rwlock); });
}

FORKSIGHT_EXPORT(int, pthread_rwlock_wrlock, pthread_rwlock_t* rwlock) {
  return acquire(rwlock, LockKind::kRwlockWrite, false, FORKSIGHT_SITE(),
                 [&] { return FORKSIGHT_NEXT(pthread_rwlock_wrlock)(rwlock); });
}

FORKSIGHT_EXPORT(int, pthread_rwlock_timedrdlock, pthread_rwlock_t* rwlock, const timespec* deadline) {
  return acquire(rwlock, LockKind::kRwlockRead, true, FORKSIGHT_SITE(),
                 [&] { return FORKSIGHT_NEXT(pthread_rwlock_timedrdlock)(rwlock, deadline); });
}

FORKSIGHT_EXPORT(int, pthread_rwlock_timedwrlock, pthread_rwlock_t* rwlock, const timespec* deadline) {
  return acquire(rwlock, LockKind::kRwlockWrite, true, FORKSIGHT_SITE(),
                 [&] { return FORKSIGHT_NEXT(pthread_rwlock_timedwrlock)(rwlock, deadline); });
}

FORKSIGHT_EXPORT(int, pthread_rwlock_clockrdlock, pthread_rwlock_t* rwlock, clockid_t clock, const timespec* deadline) {
  return acquire(rwlock, LockKind::kRwlockRead, true, FORKSIGHT_SITE(),
                 [&] { return FORKSIGHT_NEXT(pthread_rwlock_clockrdlock)(rwlock, clock, deadline); });
}

FORKSIGHT_EXPORT(int, pthread_rwlock_clockwrlock, pthread_rwlock_t* rwlock, clockid_t clock, const timespec* deadline) {
  return acquire(rwlock, LockKind::kRwlockWrite, true, FORKSIGHT_SITE(),
                 [&] { return FORKSIGHT_NEXT(pthread_rwlock_clockwrlock)(rwlock, clock, deadline); });
}

FORKSIGHT_EXPORT(int, pthread_rwlock_tryrdlock, pthread_rwlock_t* rwlock) {
  const int result = FORKSIGHT_NEXT(pthread_rwlock_tryrdlock)(rwlock);
  if (result == 0) note_acquired(rwlock, LockKind::kRwlockRead, FORKSIGHT_SITE());
  return result;
}

FORKSIGHT_EXPORT(int, pthread_rwlock_trywrlock, pthread_rwlock_t* rwlock) {
  const int result = FORKSIGHT_NEXT(pthread_rwlock_trywrlock)(rwlock);
  if (result == 0) note_acquired(rwlock, LockKind::kRwlockWrite, FORKSIGHT_SITE());
  return result;
}

FORKSIGHT_EXPORT(int, pthread_rwlock_unlock, pthread_rwlock_t* rwlock) {
  note_released(rwlock);
  return FORKSIGHT_NEXT(pthread_rwlock_unlock)(rwlock);
}
