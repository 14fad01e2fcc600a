// Joining a thread. The join is noted as a wait, so that a fork can record what its lost threads waited for. If a child
// joins a lost thread, nothing is recorded, because libc returns at once.
#include <threads.h>

#include "guest/site.hpp"
#include "loader/next.hpp"
#include "locks/wait_guard.hpp"
#include "record/thread_events.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

template <class Join>
__attribute__((always_inline)) inline int join(pthread_t thread, Join join) {
  Slot* const slot = own_slot();
  if (slot == nullptr) return join();
  const auto pointer = static_cast<std::uint64_t>(thread);
  const std::uint64_t awaited = thread_awaited(pointer);
  const int result = note_wait(slot, trace::WaitKind::kJoin, pointer, FORKSIGHT_FRAME(), nullptr, join);
  if (awaited != 0 && result == 0) thread_joined(pointer, awaited);
  return result;
}

}  // namespace

FORKSIGHT_EXPORT(int, pthread_join, pthread_t thread, void** result) {
  return join(thread, [=] { return FORKSIGHT_NEXT(pthread_join)(thread, result); });
}

FORKSIGHT_EXPORT(int, pthread_timedjoin_np, pthread_t thread, void** result, const timespec* deadline) {
  return join(thread, [=] { return FORKSIGHT_NEXT(pthread_timedjoin_np)(thread, result, deadline); });
}

FORKSIGHT_EXPORT(int, pthread_clockjoin_np, pthread_t thread, void** result, clockid_t clock,
                 const timespec* deadline) {
  return join(thread, [=] { return FORKSIGHT_NEXT(pthread_clockjoin_np)(thread, result, clock, deadline); });
}

FORKSIGHT_EXPORT(int, pthread_tryjoin_np, pthread_t thread, void** result) {
  const auto pointer = static_cast<std::uint64_t>(thread);
  const std::uint64_t awaited = thread_awaited(pointer);
  const int error = FORKSIGHT_NEXT(pthread_tryjoin_np)(thread, result);
  if (awaited != 0 && error == 0) thread_joined(pointer, awaited);
  return error;
}

FORKSIGHT_EXPORT(int, thrd_join, thrd_t thread, int* result) {
  return join(thread, [=] { return FORKSIGHT_NEXT(thrd_join)(thread, result); });
}
