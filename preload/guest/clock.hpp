#pragma once

#include <time.h>

#include <cstdint>

namespace forksight {

// The vdso: no system call, no errno on success, async-signal-safe.
inline std::uint64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace forksight
