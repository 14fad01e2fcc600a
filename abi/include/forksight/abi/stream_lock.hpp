// The lock of a FILE: _IO_lock_t, sysdeps/nptl/stdio-lock.h.
#pragma once

#include "forksight/abi/glibc.hpp"

namespace forksight::abi {

struct StreamLock {
  static constexpr Versions kVersions{{2, 28}, {2, 43}};

  std::uint32_t lock;
  std::uint32_t count;
  std::uint64_t owner;  // pthread_self() of the holder
};
static_assert(sizeof(StreamLock) == 16);

}  // namespace forksight::abi
