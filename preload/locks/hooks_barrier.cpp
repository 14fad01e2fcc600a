// Barriers. If one thread forks while another thread waits at a barrier, the child does not have the waiting thread.
// But the child's copy of the barrier still counts that thread.
#include "guest/site.hpp"
#include "loader/next.hpp"
#include "locks/lost_waiters.hpp"
#include "locks/wait_guard.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

using trace::SyncOperation;

__attribute__((noinline, cold)) int destroy_slow(pthread_barrier_t* barrier) {
  initialise();
  const Touch touch = touch_barrier(barrier, SyncOperation::kDestroy, FORKSIGHT_FRAME().site());
  const int result = FORKSIGHT_NEXT(pthread_barrier_destroy)(barrier);
  end_touch(touch, result);
  return result;
}

}  // namespace

FORKSIGHT_EXPORT(int, pthread_barrier_wait, pthread_barrier_t* barrier) {
  Touch touch{0};
  if (FORKSIGHT_UNLIKELY(g_sync_is_watched)) {
    initialise();
    touch = touch_barrier(barrier, SyncOperation::kWait, FORKSIGHT_FRAME().site());
  }
  const auto wait = [=] { return FORKSIGHT_NEXT(pthread_barrier_wait)(barrier); };
  Slot* const slot = own_slot();
  const int result = slot == nullptr
                         ? wait()
                         : note_wait(slot, trace::WaitKind::kBarrier, reinterpret_cast<std::uint64_t>(barrier),
                                     FORKSIGHT_FRAME(), nullptr, wait);
  end_touch(touch, result);
  return result;
}

FORKSIGHT_EXPORT(int, pthread_barrier_destroy, pthread_barrier_t* barrier) {
  if (FORKSIGHT_UNLIKELY(g_sync_is_watched)) return destroy_slow(barrier);
  return FORKSIGHT_NEXT(pthread_barrier_destroy)(barrier);
}
