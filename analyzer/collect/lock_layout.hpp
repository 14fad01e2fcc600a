// What the own bytes of a lock say. Layouts of glibc on x86-64 (2.36; unchanged since 2.25): pthread_mutex_t,
// pthread_rwlock_t, pthread_spinlock_t, pthread_cond_t, pthread_barrier_t and the 64-bit sem_t.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "forksight/trace/format.hpp"
#include "model/model.hpp"

namespace forksight::collect {

struct LockState {
  bool held = false;
  model::MutexType type = model::MutexType::kUnknown;
  bool robust = false;
  bool priority_inherit = false;
  bool process_shared = false;  // false for robust mutexes: their memory does not tell
  std::int32_t owner = 0;       // tid; 0: the memory does not say
  std::uint32_t waiters = 0;    // of condition variables and barriers
};

// nullopt: too few bytes to tell.
std::optional<LockState> decode_lock(trace::LockKind kind, std::span<const std::uint8_t> memory);

}  // namespace forksight::collect
