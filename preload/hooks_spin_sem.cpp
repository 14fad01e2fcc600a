// Spinlocks, and semaphores used as locks. A semaphore may be a signal instead: one thread waits, another posts. So a
// thread keeps one entry a semaphore at most, and its value in the frozen memory decides whether it was taken.
#include "lock_guard.hpp"
#include "site.hpp"

#include "guest.hpp"

using namespace forksight;

namespace {

constexpr auto kSpin = trace::LockKind::kSpinlock;
constexpr auto kSemaphore = trace::LockKind::kSemaphore;

// Semaphore functions report by errno: what our own attempts leave there is undone. A wait is a cancellation point also
// where it need not block, an attempt is none.
int try_semaphore(sem_t* semaphore) {
  pthread_testcancel();
  const int saved = errno;
  if (FORKSIGHT_NEXT(sem_trywait)(semaphore) == 0) return 0;
  const int error = errno == EAGAIN ? EBUSY : errno;
  errno = saved;
  return error;
}

template <class Wait>
__attribute__((always_inline)) inline int wait_on(sem_t* semaphore, bool timed, Wait wait) {
  return acquire<Push::kOnce>(semaphore, kSemaphore, timed, wait, [=] { return try_semaphore(semaphore); });
}

}  // namespace

FORKSIGHT_EXPORT(int, pthread_spin_lock, pthread_spinlock_t* spin) {
  return acquire(
      spin, kSpin, false, [=] { return FORKSIGHT_RESOLVED(pthread_spin_lock)(spin); },
      [=] { return FORKSIGHT_NEXT(pthread_spin_trylock)(spin); });
}

FORKSIGHT_EXPORT(int, pthread_spin_trylock, pthread_spinlock_t* spin) {
  return attempt(spin, kSpin, [=] { return FORKSIGHT_NEXT(pthread_spin_trylock)(spin); });
}

FORKSIGHT_EXPORT(int, pthread_spin_unlock, pthread_spinlock_t* spin) {
  if (!release_fast(spin, kSpin)) release_slow(spin);
  return FORKSIGHT_RESOLVED(pthread_spin_unlock)(spin);
}

FORKSIGHT_EXPORT(int, sem_wait, sem_t* semaphore) {
  return wait_on(semaphore, false, [=] { return FORKSIGHT_RESOLVED(sem_wait)(semaphore); });
}

FORKSIGHT_EXPORT(int, sem_timedwait, sem_t* semaphore, const timespec* deadline) {
  return wait_on(semaphore, true, [=] { return FORKSIGHT_NEXT(sem_timedwait)(semaphore, deadline); });
}

FORKSIGHT_EXPORT(int, sem_clockwait, sem_t* semaphore, clockid_t clock, const timespec* deadline) {
  return wait_on(semaphore, true, [=] { return FORKSIGHT_NEXT(sem_clockwait)(semaphore, clock, deadline); });
}

FORKSIGHT_EXPORT(int, sem_trywait, sem_t* semaphore) {
  return attempt<Push::kOnce>(semaphore, kSemaphore, [=] { return FORKSIGHT_NEXT(sem_trywait)(semaphore); });
}

// Async-signal-safe, as POSIX asks of it.
FORKSIGHT_EXPORT(int, sem_post, sem_t* semaphore) {
  if (!release_fast(semaphore, kSemaphore)) release_slow(semaphore);
  return FORKSIGHT_RESOLVED(sem_post)(semaphore);
}
