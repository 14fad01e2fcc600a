// Read-write locks. The memory of the lock does not say which threads are its readers. Only the held arrays show this.
#include "guest/site.hpp"
#include "locks/lock_guard.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

constexpr auto kRead = trace::LockKind::kRwlockRead;
constexpr auto kWrite = trace::LockKind::kRwlockWrite;

template <class Lock>
__attribute__((always_inline)) inline int lock_to_read(pthread_rwlock_t* rwlock, bool timed, Lock lock) {
  return acquire(rwlock, kRead, timed, lock);
}

template <class Lock>
__attribute__((always_inline)) inline int lock_to_write(pthread_rwlock_t* rwlock, bool timed, Lock lock) {
  return acquire(rwlock, kWrite, timed, lock);
}

}  // namespace

FORKSIGHT_EXPORT(int, pthread_rwlock_rdlock, pthread_rwlock_t* rwlock) {
  return lock_to_read(rwlock, false, [=] { return FORKSIGHT_NEXT(pthread_rwlock_rdlock)(rwlock); });
}

FORKSIGHT_EXPORT(int, pthread_rwlock_timedrdlock, pthread_rwlock_t* rwlock, const timespec* deadline) {
  return lock_to_read(rwlock, true, [=] { return FORKSIGHT_NEXT(pthread_rwlock_timedrdlock)(rwlock, deadline); });
}

FORKSIGHT_EXPORT(int, pthread_rwlock_clockrdlock, pthread_rwlock_t* rwlock, clockid_t clock, const timespec* deadline) {
  return lock_to_read(rwlock, true,
                      [=] { return FORKSIGHT_NEXT(pthread_rwlock_clockrdlock)(rwlock, clock, deadline); });
}

FORKSIGHT_EXPORT(int, pthread_rwlock_wrlock, pthread_rwlock_t* rwlock) {
  return lock_to_write(rwlock, false, [=] { return FORKSIGHT_NEXT(pthread_rwlock_wrlock)(rwlock); });
}

FORKSIGHT_EXPORT(int, pthread_rwlock_timedwrlock, pthread_rwlock_t* rwlock, const timespec* deadline) {
  return lock_to_write(rwlock, true, [=] { return FORKSIGHT_NEXT(pthread_rwlock_timedwrlock)(rwlock, deadline); });
}

FORKSIGHT_EXPORT(int, pthread_rwlock_clockwrlock, pthread_rwlock_t* rwlock, clockid_t clock, const timespec* deadline) {
  return lock_to_write(rwlock, true,
                       [=] { return FORKSIGHT_NEXT(pthread_rwlock_clockwrlock)(rwlock, clock, deadline); });
}

FORKSIGHT_EXPORT(int, pthread_rwlock_tryrdlock, pthread_rwlock_t* rwlock) {
  return attempt(rwlock, kRead, [=] { return FORKSIGHT_NEXT(pthread_rwlock_tryrdlock)(rwlock); });
}

FORKSIGHT_EXPORT(int, pthread_rwlock_trywrlock, pthread_rwlock_t* rwlock) {
  return attempt(rwlock, kWrite, [=] { return FORKSIGHT_NEXT(pthread_rwlock_trywrlock)(rwlock); });
}

namespace {

FORKSIGHT_TAIL_CALLED int unlock_slow(pthread_rwlock_t* rwlock) {
  release_slow(rwlock);
  if (locks_are_watched()) forget_given_to_child(rwlock, FORKSIGHT_FRAME().site());
  return FORKSIGHT_NEXT(pthread_rwlock_unlock)(rwlock);
}

}  // namespace

FORKSIGHT_EXPORT(int, pthread_rwlock_unlock, pthread_rwlock_t* rwlock) {
  return release_fast(rwlock) ? FORKSIGHT_NEXT(pthread_rwlock_unlock)(rwlock) : unlock_slow(rwlock);
}
