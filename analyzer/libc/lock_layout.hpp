// What the bytes of a lock mean, by the layouts of the libc that the lock belongs to (forksight/abi/).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "forksight/abi/glibc.hpp"
#include "model/model.hpp"

namespace forksight::libc {

struct LockState {
  bool held = false;
  model::MutexType type = model::MutexType::kUnknown;
  bool robust = false;
  bool priority_inherit = false;
  bool process_shared = false;  // false for robust mutexes, because their memory does not show this
  std::int32_t owner = 0;       // the tid of the owner; 0: the memory does not show it
  std::uint32_t waiters = 0;    // how many threads wait at a condition variable or barrier

  // True if only a thread with the owner's tid can unlock the lock.
  bool checks_owner() const {
    return robust || priority_inherit || type == model::MutexType::kRecursive || type == model::MutexType::kErrorcheck;
  }
};

// Decodes the bytes of a lock of this kind. nullopt: there are too few bytes, the libc is not known, or the lock is not
// one of libc (kPython).
std::optional<LockState> decode_lock(model::LockKind kind, std::span<const std::uint8_t> memory, const abi::Libc& libc);

}  // namespace forksight::libc
