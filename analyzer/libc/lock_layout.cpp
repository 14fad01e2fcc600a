#include "libc/lock_layout.hpp"

#include "forksight/abi/barrier.hpp"
#include "forksight/abi/condition.hpp"
#include "forksight/abi/guard.hpp"
#include "forksight/abi/mutex.hpp"
#include "forksight/abi/rwlock.hpp"
#include "forksight/abi/semaphore.hpp"
#include "forksight/abi/spinlock.hpp"
#include "libc/mutex_type.hpp"

namespace forksight::libc {

namespace {

using LockBytes = std::span<const std::uint8_t>;

template <class T>
std::optional<T> load_lock(LockBytes memory, const abi::Libc& libc) {
  if (!T::kVersions.have(libc.version) || memory.size() < sizeof(T)) return std::nullopt;
  return abi::load<T>(memory.data());
}

LockState state_of(const abi::Mutex& mutex) {
  LockState state;
  state.type = type_of(mutex);
  state.robust = mutex.is_robust();
  state.priority_inherit = mutex.is_pi();
  state.process_shared = mutex.is_shared() && !mutex.is_robust();
  state.held = mutex.is_held();
  state.owner = mutex.has_tid_in_lock() || mutex.owner == 0 ? mutex.holder() : mutex.owner;
  return state;
}

LockState state_of(const abi::Rwlock& rwlock, bool to_write) {
  LockState state;
  state.process_shared = rwlock.shared != 0;
  state.held = to_write ? rwlock.cur_writer != 0 : rwlock.reader_count() != 0;
  state.owner = to_write ? rwlock.cur_writer : 0;
  return state;
}

LockState state_of(const abi::Semaphore& semaphore) {
  LockState state;
  state.held = semaphore.is_empty();
  state.process_shared = semaphore.shared != 0;
  return state;
}

LockState waited_for(std::uint32_t waiters, bool is_shared) {
  LockState state;
  state.waiters = waiters;
  state.held = waiters != 0;
  state.process_shared = is_shared;
  return state;
}

LockState held(bool is_held) {
  LockState state;
  state.held = is_held;
  return state;
}

}  // namespace

std::optional<LockState> decode_lock(model::LockKind kind, LockBytes memory, const abi::Libc& libc) {
  switch (kind) {
    case model::LockKind::kMutex:
      if (const auto mutex = load_lock<abi::Mutex>(memory, libc)) return state_of(*mutex);
      break;
    case model::LockKind::kRwlockRead:
    case model::LockKind::kRwlockWrite:
      if (const auto rwlock = load_lock<abi::Rwlock>(memory, libc))
        return state_of(*rwlock, kind == model::LockKind::kRwlockWrite);
      break;
    case model::LockKind::kSpinlock:
      if (const auto spinlock = load_lock<abi::Spinlock>(memory, libc)) return held(spinlock->is_held());
      break;
    case model::LockKind::kSemaphore:
      if (const auto semaphore = load_lock<abi::Semaphore>(memory, libc)) return state_of(*semaphore);
      break;
    case model::LockKind::kBarrier:
      if (const auto barrier = load_lock<abi::Barrier>(memory, libc))
        return waited_for(barrier->inside(), barrier->shared != 0);
      break;
    case model::LockKind::kCondition: {
      const abi::ConditionLayout* const layout = abi::layout_of(libc.condition);
      if (layout == nullptr || memory.size() < abi::kConditionBytes) break;
      const abi::Condition condition = abi::load_condition(*layout, memory.data());
      return waited_for(condition.waiters(), condition.is_shared());
    }
    case model::LockKind::kGuard:
      if (memory.size() < sizeof(std::uint64_t)) break;
      return held(abi::is_initialising(abi::load<std::uint64_t>(memory.data())));
    case model::LockKind::kCustom: return held(true);  // known from the program's annotations, not from the bytes
    case model::LockKind::kPython: break;              // not a lock of libc
  }
  return std::nullopt;
}

}  // namespace forksight::libc
