// Condition variables: a wait releases a mutex and acquires it again.
#include "lock_guard.hpp"
#include "site.hpp"

#include "guest.hpp"

using namespace forksight;

namespace {

constexpr auto kKind = trace::LockKind::kMutex;

// A condition wait gives the mutex back while it blocks. When it is cancelled, the unwinding passes here and the entry
// is not restored: the cleanup handler's unlock then finds none, which is harmless.
// Always inlined: the frame named here is the hook's.
template <class Wait>
__attribute__((always_inline)) inline int wait_on(pthread_cond_t* condition, pthread_mutex_t* mutex, Wait wait) {
  const bool was_held = release_fast(mutex) || release_slow(mutex);
  Slot* const slot = t_slot;
  if (slot == nullptr) return wait();
  slot->wait_object = reinterpret_cast<std::uint64_t>(condition);
  slot->wait_kind = trace::WaitKind::kCondition;
  const int result = wait();
  slot->wait_kind = trace::WaitKind::kNone;
  // Whatever the result, a mutex that was held before is held again.
  if (was_held) note_acquired<Push::kEach>(slot, mutex, kKind, FORKSIGHT_FRAME());
  return result;
}

}  // namespace

// The mutex is not held during the wait, and held from this call site on after it.
FORKSIGHT_EXPORT(int, pthread_cond_wait, pthread_cond_t* condition, pthread_mutex_t* mutex) {
  return wait_on(condition, mutex, [=] { return FORKSIGHT_NEXT(pthread_cond_wait)(condition, mutex); });
}

FORKSIGHT_EXPORT(int, pthread_cond_timedwait, pthread_cond_t* condition, pthread_mutex_t* mutex,
                 const timespec* deadline) {
  return wait_on(condition, mutex, [=] { return FORKSIGHT_NEXT(pthread_cond_timedwait)(condition, mutex, deadline); });
}

FORKSIGHT_EXPORT(int, pthread_cond_clockwait, pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                 const timespec* deadline) {
  return wait_on(condition, mutex,
                 [=] { return FORKSIGHT_NEXT(pthread_cond_clockwait)(condition, mutex, clock, deadline); });
}
