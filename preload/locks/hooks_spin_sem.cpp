// Spinlocks, and semaphores that are used as locks. A semaphore may be a signal instead: one thread waits, another
// posts. So a thread has at most one entry for a semaphore. A fork ignores the entry if the semaphore is known to be a
// signal (semaphore_use.hpp). At a fork, the value in the frozen memory decides whether the semaphore was taken.
#include "guest/site.hpp"
#include "loader/lazy_next.hpp"
#include "locks/lock_guard.hpp"
#include "locks/semaphore_use.hpp"
#include "locks/wait_guard.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

constexpr auto kSpin = trace::LockKind::kSpinlock;
constexpr auto kSemaphore = trace::LockKind::kSemaphore;

// Notes a wait only if it may block. A wait that finds a value above 0 does not block.
template <class Wait>
int wait_noted(sem_t* semaphore, Frame frame, Wait wait) {
  Slot* const slot = t_slot;
  if (slot == nullptr || !is_taken(kSemaphore, semaphore)) return wait();
  return note_wait(slot, trace::WaitKind::kSemaphore, reinterpret_cast<std::uint64_t>(semaphore), frame, nullptr, wait);
}

template <class Wait>
__attribute__((always_inline)) inline int wait_on(sem_t* semaphore, bool timed, Wait wait) {
  const Frame frame = FORKSIGHT_FRAME();
  return acquire<Push::kOnce>(semaphore, kSemaphore, timed, [=] { return wait_noted(semaphore, frame, wait); });
}

__attribute__((noinline, cold)) int wait_slow(sem_t* semaphore, Frame frame) {
  return acquire_slow<Push::kOnce>(semaphore, kSemaphore, false, frame, [=] {
    return wait_noted(semaphore, frame, [=] { return FORKSIGHT_NEXT(sem_wait)(semaphore); });
  });
}

FORKSIGHT_TAIL_CALLED int unlock_slow(pthread_spinlock_t* spin) {
  release_slow(spin);
  return FORKSIGHT_NEXT(pthread_spin_unlock)(spin);
}

FORKSIGHT_TAIL_CALLED int post_slow(sem_t* semaphore) {
  // If the array of the thread was full at some time, the thread may have taken the semaphore without an entry.
  if (!release_slow(semaphore) && (t_slot == nullptr || t_slot->overflow == 0)) note_semaphore_is_signal(semaphore);
  return FORKSIGHT_NEXT(sem_post)(semaphore);
}

}  // namespace

// If the real function is recognised as the one of glibc, the hook makes the first attempt itself: a call of the real
// function would take a tenth of the time of lock and unlock. If the attempt fails, the hook calls the real function,
// whose loop begins with another attempt.
FORKSIGHT_EXPORT(int, pthread_spin_lock, pthread_spinlock_t* spin) {
  return acquire(spin, kSpin, false, [=] {
    const bool is_taken = g_spin_is_glibcs && __atomic_sub_fetch(spin, 1, __ATOMIC_ACQUIRE) == 0;
    return is_taken ? 0 : FORKSIGHT_NEXT(pthread_spin_lock)(spin);
  });
}

FORKSIGHT_EXPORT(int, pthread_spin_trylock, pthread_spinlock_t* spin) {
  return attempt(spin, kSpin, [=] { return FORKSIGHT_NEXT(pthread_spin_trylock)(spin); });
}

FORKSIGHT_EXPORT(int, pthread_spin_unlock, pthread_spinlock_t* spin) {
  return release_fast(spin) ? FORKSIGHT_NEXT(pthread_spin_unlock)(spin) : unlock_slow(spin);
}

// A call that finds a value above 0 takes the fast path, because it does not block.
FORKSIGHT_EXPORT(int, sem_wait, sem_t* semaphore) {
  if (FORKSIGHT_UNLIKELY(t_fast == nullptr || is_taken(kSemaphore, semaphore))) {
    const Frame frame = FORKSIGHT_FRAME();
    const int result = wait_slow(semaphore, frame);
    keep(frame);
    return result;
  }
  const int result = FORKSIGHT_NEXT(sem_wait)(semaphore);
  if (FORKSIGHT_LIKELY(result == 0)) push_held_once(t_slot, tag_lock(semaphore, kSemaphore), FORKSIGHT_FRAME());
  return result;
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

// Removes the entry of the semaphore. CPython's condition variables have a semaphore for each waiting thread. The
// thread takes the semaphore when it is woken, and never posts it.
FORKSIGHT_EXPORT(int, sem_destroy, sem_t* semaphore) {
  release_slow(semaphore);
  note_semaphore_ends(semaphore);
  return FORKSIGHT_LAZY_NEXT(sem_destroy)(semaphore);
}

FORKSIGHT_EXPORT(int, sem_init, sem_t* semaphore, int shared, unsigned value) {
  const int result = FORKSIGHT_LAZY_NEXT(sem_init)(semaphore, shared, value);
  if (result == 0) note_semaphore_begins(semaphore, value);
  return result;
}

// Async-signal-safe, as POSIX requires.
FORKSIGHT_EXPORT(int, sem_post, sem_t* semaphore) {
  return release_fast(semaphore) ? FORKSIGHT_NEXT(sem_post)(semaphore) : post_slow(semaphore);
}
