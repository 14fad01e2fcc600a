// What the bytes of a lock mean, by the layouts of the libc that it belongs to (forksight/abi/).
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
  bool process_shared = false;  // false for robust mutexes, whose memory does not show it
  std::int32_t owner = 0;       // tid; 0: the memory does not show it
  std::uint32_t waiters = 0;    // for condition variables and barriers

  // True if only a thread with the owner's tid can unlock the lock.
  bool checks_owner() const {
    return robust || priority_inherit || type == model::MutexType::kRecursive || type == model::MutexType::kErrorcheck;
  }
};

// nullopt: too few bytes, or a libc that is not known.
std::optional<LockState> decode_lock(model::LockKind kind, std::span<const std::uint8_t> memory, const abi::Libc& libc);

}  // namespace forksight::libc
