// sem_t on machines with 64-bit atomics: struct new_sem, sysdeps/nptl/internaltypes.h.
#pragma once

#include "forksight/abi/glibc.hpp"

namespace forksight::abi {

struct Semaphore {
  static constexpr Versions kVersions{{2, 28}, {2, 43}};
  static constexpr std::size_t kObjectBytes = 32;

  std::uint32_t value = 1;
  std::uint32_t waiters = 0;
  std::int32_t shared = 0;  // 0: private; 128: shared between processes

  constexpr bool is_empty() const { return value == 0; }
};
static_assert(sizeof(Semaphore) == 12);

}  // namespace forksight::abi
