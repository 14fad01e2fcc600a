// Mutexes of every kind, and condition waits, which release and re-acquire one.
#include "lock_guard.hpp"
#include "site.hpp"

#include "guest.hpp"

using namespace forksight;

namespace {

constexpr auto kKind = trace::LockKind::kMutex;

template <class Lock>
__attribute__((noinline, cold)) int lock_armed(pthread_mutex_t* mutex, bool timed, const Site& site, Lock lock) {
  return acquire_armed(mutex, kKind, timed, site, [&] { return FORKSIGHT_NEXT(pthread_mutex_trylock)(mutex); }, lock);
}

__attribute__((noinline, cold)) int unlock_armed(pthread_mutex_t* mutex, const Site& site) {
  const int result = FORKSIGHT_NEXT(pthread_mutex_unlock)(mutex);
  if (result == EPERM) {
    touch_refused_unlock(mutex, result, site);
  } else if (result == 0) {
    forget_orphan(mutex);
  }
  return result;
}

// A condition wait gives the mutex back while it blocks. When it is cancelled, the unwinding passes here and the entry
// is not restored: the cleanup handler's unlock then finds none, which is harmless.
template <class Wait>
int wait_on(pthread_cond_t* condition, pthread_mutex_t* mutex, const Site& site, Wait wait) {
  const bool was_held = note_released(mutex);
  Slot* const slot = t_slot;
  if (slot != nullptr) {
    slot->wait_object = reinterpret_cast<std::uint64_t>(condition);
    slot->wait_kind = trace::WaitKind::kCondition;
  }
  const int result = wait();
  if (slot != nullptr) slot->wait_kind = trace::WaitKind::kNone;
  // All results but these are given before the mutex was released, or after it was acquired again.
  if (was_held && result != EPERM) note_acquired(mutex, kKind, site);
  return result;
}

}  // namespace

// Locks the mutex; on success the thread holds it from this call site.
FORKSIGHT_EXPORT(int, pthread_mutex_lock, pthread_mutex_t* mutex) {
  const auto lock = FORKSIGHT_NEXT(pthread_mutex_lock);
  const int result = FORKSIGHT_UNLIKELY(g_next.armed) ? lock_armed(mutex, false, FORKSIGHT_SITE(), [&] { return lock(mutex); })
                                                      : lock(mutex);
  if (FORKSIGHT_LIKELY(was_acquired(result))) note_acquired(mutex, kKind, FORKSIGHT_SITE());
  return result;
}

// Never blocks, so it touches nothing.
FORKSIGHT_EXPORT(int, pthread_mutex_trylock, pthread_mutex_t* mutex) {
  const int result = FORKSIGHT_NEXT(pthread_mutex_trylock)(mutex);
  if (was_acquired(result)) note_acquired(mutex, kKind, FORKSIGHT_SITE());
  return result;
}

FORKSIGHT_EXPORT(int, pthread_mutex_timedlock, pthread_mutex_t* mutex, const timespec* deadline) {
  const auto lock = [&] { return FORKSIGHT_NEXT(pthread_mutex_timedlock)(mutex, deadline); };
  const int result = FORKSIGHT_UNLIKELY(g_next.armed) ? lock_armed(mutex, true, FORKSIGHT_SITE(), lock) : lock();
  if (FORKSIGHT_LIKELY(was_acquired(result))) note_acquired(mutex, kKind, FORKSIGHT_SITE());
  return result;
}

FORKSIGHT_EXPORT(int, pthread_mutex_clocklock, pthread_mutex_t* mutex, clockid_t clock, const timespec* deadline) {
  const auto lock = [&] { return FORKSIGHT_NEXT(pthread_mutex_clocklock)(mutex, clock, deadline); };
  const int result = FORKSIGHT_UNLIKELY(g_next.armed) ? lock_armed(mutex, true, FORKSIGHT_SITE(), lock) : lock();
  if (FORKSIGHT_LIKELY(was_acquired(result))) note_acquired(mutex, kKind, FORKSIGHT_SITE());
  return result;
}

// Forgets the mutex before it is free, so that no other thread's acquisition can overtake.
FORKSIGHT_EXPORT(int, pthread_mutex_unlock, pthread_mutex_t* mutex) {
  note_released(mutex);
  if (FORKSIGHT_UNLIKELY(g_next.armed)) return unlock_armed(mutex, FORKSIGHT_SITE());
  return FORKSIGHT_NEXT(pthread_mutex_unlock)(mutex);
}

FORKSIGHT_EXPORT(int, pthread_cond_wait, pthread_cond_t* condition, pthread_mutex_t* mutex) {
  return wait_on(condition, mutex, FORKSIGHT_SITE(), [&] { return FORKSIGHT_NEXT(pthread_cond_wait)(condition, mutex); });
}

FORKSIGHT_EXPORT(int, pthread_cond_timedwait, pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* deadline) {
  return wait_on(condition, mutex, FORKSIGHT_SITE(),
                 [&] { return FORKSIGHT_NEXT(pthread_cond_timedwait)(condition, mutex, deadline); });
}

FORKSIGHT_EXPORT(int, pthread_cond_clockwait, pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                 const timespec* deadline) {
  return wait_on(condition, mutex, FORKSIGHT_SITE(),
                 [&] { return FORKSIGHT_NEXT(pthread_cond_clockwait)(condition, mutex, clock, deadline); });
}
