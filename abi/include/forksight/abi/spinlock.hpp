// pthread_spinlock_t of x86: sysdeps/x86_64/nptl/pthread_spin_lock.S. Other processors use 0 for a free lock.
#pragma once

#include "forksight/abi/glibc.hpp"

namespace forksight::abi {

struct Spinlock {
  static constexpr Versions kVersions{{2, 28}, {2, 43}};
  static constexpr std::int32_t kFree = 1;

  std::int32_t value = kFree;

  // Each attempt to take the lock subtracts one from `value`. Only the first attempt finds the lock free.
  constexpr bool is_held() const { return value <= 0; }
};
static_assert(sizeof(Spinlock) == 4);

}  // namespace forksight::abi
