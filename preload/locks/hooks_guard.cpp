// Static variables of functions: a thread is inside of the initialisation between __cxa_guard_acquire and
// __cxa_guard_release. Compilers inline the test whether the variable is already initialised. Once the variable is
// initialised, the program no longer calls these functions.
#include <errno.h>

#include "guest/site.hpp"
#include "loader/next.hpp"
#include "locks/guard_runtime.hpp"
#include "locks/held.hpp"
#include "locks/lock_memory.hpp"
#include "locks/orphans.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

constexpr auto kKind = trace::LockKind::kGuard;

void forget(std::uint64_t* guard) {
  initialise();
  Slot* const slot = t_slot;
  if (slot == nullptr || pop_held(slot, guard)) return;
  pop_held_slow(slot, reinterpret_cast<std::uint64_t>(guard));
}

}  // namespace

// The real function of libstdc++ throws an exception if the initialisation is recursive. Then no entry stays in the
// held array, because the entry is made after the call.
FORKSIGHT_EXPORT(int, __cxa_guard_acquire, std::uint64_t* guard) {
  initialise();
  const Frame frame = FORKSIGHT_FRAME();
  const GuardRuntime runtime = guard_runtime_of(frame.site().pc);
  Slot* const slot = own_slot();
  Touch touch{0};
  if (FORKSIGHT_UNLIKELY(locks_are_watched()) && is_taken(kKind, guard)) {
    touch = touch_lock(guard, kKind, false, frame.site());
  }
  const int must_initialise = runtime.acquire(guard);
  if (FORKSIGHT_UNLIKELY(locks_are_watched())) {
    end_touch(touch, 0);
    forget_orphan(guard, kKind);
  }
  if (must_initialise != 0 && slot != nullptr) push_held(slot, tag_lock(guard, kKind), frame);
  return must_initialise;
}

FORKSIGHT_EXPORT(void, __cxa_guard_release, std::uint64_t* guard) {
  const GuardRuntime runtime = guard_runtime_of(FORKSIGHT_FRAME().site().pc);
  forget(guard);
  runtime.release(guard);
}

FORKSIGHT_EXPORT(void, __cxa_guard_abort, std::uint64_t* guard) {
  const GuardRuntime runtime = guard_runtime_of(FORKSIGHT_FRAME().site().pc);
  forget(guard);
  runtime.abandon(guard);
}
