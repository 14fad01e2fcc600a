// Spinlocks, and semaphores used as locks. A semaphore may be a signal instead: one thread waits, another posts. So a
// thread keeps one entry a semaphore at most, and its value in the frozen memory decides whether it was taken.
#include "lock_guard.hpp"
#include "site.hpp"

#include "guest.hpp"

using namespace forksight;

namespace {

using trace::LockKind;

void note_taken(sem_t* semaphore, const Site& site) {
  Slot* const slot = own_slot();
  if (slot != nullptr) push_held_once(slot, tag_lock(semaphore, LockKind::kSemaphore), site);
}

// Semaphore functions report by errno: what our own attempts leave there is undone.
template <class Wait>
int wait_on(sem_t* semaphore, bool timed, const Site& site, Wait wait) {
  int result = 0;
  if (FORKSIGHT_LIKELY(!g_next.armed)) {
    result = wait();
  } else {
    // The wait is a cancellation point even where it need not block.
    pthread_testcancel();
    const int saved = errno;
    const auto try_wait = [&] {
      const int tried = FORKSIGHT_NEXT(sem_trywait)(semaphore);
      if (tried == 0) return 0;
      const int error = errno == EAGAIN ? EBUSY : errno;
      errno = saved;
      return error;
    };
    result = acquire_armed(semaphore, LockKind::kSemaphore, timed, site, try_wait, wait);
  }
  if (FORKSIGHT_LIKELY(result == 0)) note_taken(semaphore, site);
  return result;
}

}  // namespace

FORKSIGHT_EXPORT(int, pthread_spin_lock, pthread_spinlock_t* spin) {
  const auto lock = [&] { return FORKSIGHT_NEXT(pthread_spin_lock)(spin); };
  const auto try_lock = [&] { return FORKSIGHT_NEXT(pthread_spin_trylock)(spin); };
  const int result = FORKSIGHT_UNLIKELY(g_next.armed)
                         ? acquire_armed(const_cast<int*>(spin), LockKind::kSpinlock, false, FORKSIGHT_SITE(), try_lock, lock)
                         : lock();
  if (FORKSIGHT_LIKELY(result == 0)) note_acquired(spin, LockKind::kSpinlock, FORKSIGHT_SITE());
  return result;
}

FORKSIGHT_EXPORT(int, pthread_spin_trylock, pthread_spinlock_t* spin) {
  const int result = FORKSIGHT_NEXT(pthread_spin_trylock)(spin);
  if (result == 0) note_acquired(spin, LockKind::kSpinlock, FORKSIGHT_SITE());
  return result;
}

FORKSIGHT_EXPORT(int, pthread_spin_unlock, pthread_spinlock_t* spin) {
  note_released(spin);
  return FORKSIGHT_NEXT(pthread_spin_unlock)(spin);
}

FORKSIGHT_EXPORT(int, sem_wait, sem_t* semaphore) {
  return wait_on(semaphore, false, FORKSIGHT_SITE(), [&] { return FORKSIGHT_NEXT(sem_wait)(semaphore); });
}

FORKSIGHT_EXPORT(int, sem_timedwait, sem_t* semaphore, const timespec* deadline) {
  return wait_on(semaphore, true, FORKSIGHT_SITE(), [&] { return FORKSIGHT_NEXT(sem_timedwait)(semaphore, deadline); });
}

FORKSIGHT_EXPORT(int, sem_clockwait, sem_t* semaphore, clockid_t clock, const timespec* deadline) {
  return wait_on(semaphore, true, FORKSIGHT_SITE(), [&] { return FORKSIGHT_NEXT(sem_clockwait)(semaphore, clock, deadline); });
}

FORKSIGHT_EXPORT(int, sem_trywait, sem_t* semaphore) {
  const int result = FORKSIGHT_NEXT(sem_trywait)(semaphore);
  if (result == 0) note_taken(semaphore, FORKSIGHT_SITE());
  return result;
}

// Async-signal-safe, as POSIX asks of it.
FORKSIGHT_EXPORT(int, sem_post, sem_t* semaphore) {
  note_released(semaphore);
  return FORKSIGHT_NEXT(sem_post)(semaphore);
}
