// Condition variables of POSIX and C11. A wait releases a mutex and acquires it again. In a forked child, a condition
// variable may still count waiters of the parent. Operations on such a condition variable may wait for these waiters.
#include <threads.h>

#include "guest/site.hpp"
#include "locks/lock_guard.hpp"
#include "locks/lost_waiters.hpp"
#include "locks/wait_guard.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

using trace::SyncOperation;

// Always inlined, so that the frame used here is the hook's. C11's types are those of POSIX under other names.
template <class Wait>
__attribute__((always_inline)) inline int wait_on(void* condition, void* mutex, Wait wait) {
  if (FORKSIGHT_UNLIKELY(g_sync_is_watched)) {
    initialise();
    touch_condition(condition, SyncOperation::kWait, FORKSIGHT_FRAME().site());
  }
  const bool was_held = release_fast(mutex) || release_slow(mutex);
  Slot* const slot = t_slot;
  if (slot == nullptr) return wait();
  return note_wait(slot, trace::WaitKind::kCondition, reinterpret_cast<std::uint64_t>(condition), FORKSIGHT_FRAME(),
                   was_held ? static_cast<pthread_mutex_t*>(mutex) : nullptr, wait);
}

// Not inlined. The hook makes a tail call to this function, so the frame of this function has the return address of the
// hook's caller.
template <class Condition>
__attribute__((noinline, cold)) int operate_slow(Condition* condition, void*& next, SyncOperation operation) {
  initialise();
  const Touch touch = touch_condition(condition, operation, FORKSIGHT_FRAME().site());
  const int result = reinterpret_cast<int (*)(Condition*)>(next_of(next))(condition);
  end_touch(touch, result);
  return result;
}

// C11's destroy has no result.
__attribute__((noinline, cold)) void destroy_slow(cnd_t* condition) {
  initialise();
  const Touch touch = touch_condition(condition, SyncOperation::kDestroy, FORKSIGHT_FRAME().site());
  FORKSIGHT_NEXT(cnd_destroy)(condition);
  end_touch(touch, 0);
}

}  // namespace

// The mutex is not held during the wait. After the wait, the held array has an entry for the mutex with the site of
// this call.
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

FORKSIGHT_EXPORT(int, cnd_wait, cnd_t* condition, mtx_t* mutex) {
  return wait_on(condition, mutex, [=] { return FORKSIGHT_NEXT(cnd_wait)(condition, mutex); });
}

FORKSIGHT_EXPORT(int, cnd_timedwait, cnd_t* condition, mtx_t* mutex, const timespec* deadline) {
  return wait_on(condition, mutex, [=] { return FORKSIGHT_NEXT(cnd_timedwait)(condition, mutex, deadline); });
}

// Costs a load, a branch and a jump, except in a child that lost waiters.
#define FORKSIGHT_CONDITION_HOOK(name, type, operation)                                                               \
  FORKSIGHT_EXPORT(int, name, type* condition) {                                                                      \
    if (FORKSIGHT_UNLIKELY(g_sync_is_watched)) return operate_slow(condition, g_next.name, SyncOperation::operation); \
    return FORKSIGHT_RESOLVED(name)(condition);                                                                       \
  }
FORKSIGHT_CONDITION_HOOK(pthread_cond_signal, pthread_cond_t, kSignal)
FORKSIGHT_CONDITION_HOOK(pthread_cond_broadcast, pthread_cond_t, kBroadcast)
FORKSIGHT_CONDITION_HOOK(pthread_cond_destroy, pthread_cond_t, kDestroy)

// The functions of C11 are not required in hooks.def, so their addresses may be null: older versions of libc lack them.
// FORKSIGHT_NEXT handles this.
#define FORKSIGHT_C11_CONDITION_HOOK(name, operation)                                                                 \
  FORKSIGHT_EXPORT(int, name, cnd_t* condition) {                                                                     \
    if (FORKSIGHT_UNLIKELY(g_sync_is_watched)) return operate_slow(condition, g_next.name, SyncOperation::operation); \
    return FORKSIGHT_NEXT(name)(condition);                                                                           \
  }
FORKSIGHT_C11_CONDITION_HOOK(cnd_signal, kSignal)
FORKSIGHT_C11_CONDITION_HOOK(cnd_broadcast, kBroadcast)

FORKSIGHT_EXPORT(void, cnd_destroy, cnd_t* condition) {
  if (FORKSIGHT_UNLIKELY(g_sync_is_watched)) return destroy_slow(condition);
  FORKSIGHT_NEXT(cnd_destroy)(condition);
}
