// pthread_barrier_t: struct pthread_barrier, sysdeps/nptl/internaltypes.h; nptl/pthread_barrier_{wait,destroy}.c.
#pragma once

#include "forksight/abi/glibc.hpp"

namespace forksight::abi {

struct Barrier {
  static constexpr Versions kVersions{{2, 28}, {2, 43}};
  static constexpr std::size_t kObjectBytes = 32;

  std::uint32_t in;     // number of arrivals so far
  std::uint32_t round;  // number of arrivals in the complete rounds
  std::uint32_t count;
  std::int32_t shared;
  std::uint32_t out;  // number of arrived threads that have left

  constexpr std::uint32_t pending() const { return in - round; }
  // The number of threads that have arrived and not left. The last line is for a barrier that is being destroyed.
  // pthread_barrier_destroy() adds to `out` the difference between the highest possible value of `in` and the present
  // value of `in`, as if further threads had arrived and left. Then pthread_barrier_destroy() waits for the threads
  // that are still inside.
  constexpr std::uint32_t inside() const {
    constexpr std::uint32_t kThreshold = UINT32_MAX / 2;
    if (out <= in || count == 0) return in - out;
    return kThreshold - kThreshold % count - out;
  }
};
static_assert(sizeof(Barrier) == 20);

}  // namespace forksight::abi
